import type { ObjectServices } from './services.ts';
import { requestJson } from './send-request.ts';
import { collectionOf } from './collections.ts';
import { checkedJson } from './create.ts';
import { ownedObject } from './endpoints.ts';
import type { AddPath } from './paths.ts';
import { accountOf } from './account.ts';
import { refuseBudgeted } from './unknown-cost.ts';

/** Adds the path by which a file is put into a file search store of generateContent; both must be the caller's, and lie at one place. */
export function addFileSearch(add: AddPath, services: ObjectServices): void {
  const stores = collectionOf('generate-content', 'fileSearchStores');
  add('POST', stores, '/:id\\:importFile', async (call, _, { id = '' }) => {
    const object = await ownedObject(call, stores, id, services);
    // The provider charges for indexing a file, whose length is unknown.
    refuseBudgeted(call);
    const account = accountOf(object, services.finding.catalog);
    const body = await checkedJson(call, stores, account, services);
    const path = `/${stores.name}/${object.id}:importFile`;
    return requestJson(
      call,
      account,
      stores.format,
      { method: 'POST', path, body: JSON.stringify(body) },
      services.answerSize,
    );
  });
}
