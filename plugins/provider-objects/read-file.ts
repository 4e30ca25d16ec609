import { ignoreElements, lastValueFrom, takeWhile } from 'rxjs';
import type { JsonObject } from 'sluice';
import { inOrder, type Call } from 'sluice/internal';
import type { ProviderObject } from './core-types.ts';
import type { ObjectServices } from './services.ts';
import { sendRequest } from './send-request.ts';
import { collectionOf } from './collections.ts';
import { knownOf, linesOf, withoutDropping } from './create.ts';
import { accountOf } from './account.ts';

/**
 * Returns what is known of a file. One that its provider has put together of parts, which come in any order, is read there, once, and no further
 * than to the first line that is no request.
 */
export async function knownOfFile(
  call: Call,
  file: ProviderObject,
  services: ObjectServices,
): Promise<JsonObject> {
  const collection = collectionOf('chat-completions', 'files');
  if (file.kind !== 'chat-completions/files' || file.known['requested'] !== undefined) return file.known;
  const account = accountOf(file, services.finding.catalog);
  const question = { method: 'GET', path: `/files/${file.id}/content` } as const;
  const { bytes } = await sendRequest(call, account, collection.format, question);
  const lines = linesOf(collection, services, withoutDropping(services));
  const read = bytes.pipe(
    inOrder<Buffer, boolean>(call, async (piece) => {
      await lines.push(piece);
      return [lines.isKnown];
    }),
    takeWhile((isKnown) => isKnown),
    ignoreElements(),
  );
  const known = await lastValueFrom(read, { defaultValue: undefined })
    .then(() => knownOf(lines.end(), lines.reason))
    .finally(() => lines.close());
  await services.store.see(file, file.seen, { ...file.known, ...known });
  return known;
}
