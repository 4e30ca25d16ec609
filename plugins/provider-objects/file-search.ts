import type { Around } from './around.ts';
import { askJson } from './ask.ts';
import { collectionOf } from './collections.ts';
import { checkedJson } from './create.ts';
import { ownedObject } from './endpoints.ts';
import type { AddPath } from './paths.ts';
import { placeOf } from './place.ts';
import { refuseBudgeted } from './unknown-cost.ts';

/** Adds the path by which a file is put into a file search store of generateContent; both must be the caller's, and lie at one place. */
export function addFileSearch(add: AddPath, around: Around): void {
  const stores = collectionOf('generate-content', 'fileSearchStores');
  add('POST', stores, '/:id\\:importFile', async (call, _, { id = '' }) => {
    const object = await ownedObject(call, stores, id, around);
    // The provider charges for the indexing of a file, whose length nothing tells.
    refuseBudgeted(call);
    const place = placeOf(object, around.finding.catalog);
    const body = await checkedJson(call, stores, place, around);
    const path = `/${stores.name}/${object.id}:importFile`;
    return askJson(
      call,
      place,
      stores.format,
      { method: 'POST', path, body: JSON.stringify(body) },
      around.answerSize,
    );
  });
}
