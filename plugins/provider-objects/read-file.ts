import { ignoreElements, lastValueFrom, takeWhile, tap } from 'rxjs';
import type { JsonObject } from 'sluice';
import type { Call, ProviderObject } from 'sluice/internal';
import type { Around } from './around.ts';
import { ask } from './ask.ts';
import { collectionOf } from './collections.ts';
import { knownOf, linesOf } from './create.ts';
import { placeOf } from './place.ts';

/**
 * What the lines of a file ask for that its provider has put together of parts, which come in any order: it is read there, once. Undefined
 * for a file that has anything else in it, of which no more is read, and for files that went by here.
 */
export async function linesAtProvider(
  call: Call,
  file: ProviderObject,
  around: Around,
): Promise<JsonObject | undefined> {
  const collection = collectionOf('chat-completions', 'files');
  if (file.kind !== 'chat-completions/files' || file.known['requested'] !== undefined) return undefined;
  const place = placeOf(file, around.finding.catalog);
  const question = { method: 'GET', path: `/files/${file.id}/content` } as const;
  const { bytes } = await ask(call, place, collection.format, question);
  const lines = linesOf(collection, around);
  const read = bytes.pipe(
    tap((piece) => lines.push(piece)),
    takeWhile(() => lines.isKnown),
    ignoreElements(),
  );
  await lastValueFrom(read, { defaultValue: undefined });
  const known = knownOf(lines.end());
  await around.store.see(file, file.seen, { ...file.known, ...known });
  return known['requested'] as JsonObject | undefined;
}
