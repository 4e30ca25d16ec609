import type { Mutant } from './mutants.ts';

/** A mutant that no test can or should kill. */
export interface Accepted {
  /** Path from the root of the repository. */
  readonly file: string;
  /** The line of code, without the spaces around it. */
  readonly source: string;
  /** The code that is replaced and what stands there instead, as the list of survivors prints them. */
  readonly original: string;
  readonly replacement: string;
  /** Why the mutant does the same as the code, for everybody outside. */
  readonly reason: string;
}

/** Mutants that are known to survive, each with its reason. An entry that is killed, or that fits no code, is an error. */
export const accepted: readonly Accepted[] = [
  {
    file: 'core/routing/target-selector.ts',
    source: 'const rank = candidates[start]?.rank;',
    original: 'candidates[start]?.rank',
    replacement: 'candidates[start].rank',
    reason: 'the loop ends before the end of the list; the compiler asks for the question mark',
  },
  {
    file: 'core/routing/attempts.ts',
    source: 'const retryAfter = wait === undefined ? undefined : Math.max(1, Math.ceil(wait / 1000));',
    original: 'wait === undefined',
    replacement: 'false',
    reason: 'without a wait there are failures, and then a wait is told only where all targets cool down',
  },
  {
    file: 'core/routing/attempts.ts',
    source: 'if (this.#hedges > 0)',
    original: 'this.#hedges > 0',
    replacement: 'true',
    reason: 'a race in which no other target may be asked is the same attempt, with a timer besides',
  },
  {
    file: 'core/routing/health/index.ts',
    source: "return order.indexOf(status?.standing ?? 'up');",
    original: "'up'",
    replacement: '""',
    reason: 'what stands nowhere in the order comes first in it, and counts as up in the end',
  },
  {
    file: 'core/routing/target-selector.ts',
    source: 'if (targets[0]?.key.site === undefined) return targets;',
    original: 'targets[0]?.key',
    replacement: 'targets[0].key',
    reason: 'callers pass at least one target; the compiler asks for the question mark',
  },
  {
    file: 'core/routing/target-selector.ts',
    source: '(this.#tried ??= []).push(target);',
    original: '[]',
    replacement: '["Stryker was here"]',
    reason: 'the list is only searched for targets, and no target is a string',
  },
  {
    file: 'core/routing/target-selector.ts',
    source: 'const index = this.#tried?.indexOf(target) ?? -1;',
    original: '-1',
    replacement: '+1',
    reason: 'without a list nothing is removed, whatever the index',
  },
  {
    file: 'core/routing/catalog.ts',
    source: 'if (found.length <= 1) {',
    original: 'found.length <= 1',
    replacement: 'found.length < 1',
    reason: 'a list of one has one order; the line only spares the draw',
  },
  {
    file: 'core/routing/health/primary.ts',
    source: 'if (oldest !== undefined) kept.delete(oldest);',
    original: 'oldest !== undefined',
    replacement: 'true',
    reason: 'a map that is too large has a first key; the compiler asks for the check',
  },
  {
    file: 'core/routing/health/redis.ts',
    source: 'const places = [...this.#waiting.values()].slice(0, 200);',
    original: '[...this.#waiting.values()].slice(0, 200)',
    replacement: '[...this.#waiting.values()]',
    reason: 'the same is told, in one command instead of several',
  },
  {
    file: 'core/routing/catalog.ts',
    source: '.toSorted(([one], [other]) => (one < other ? -1 : 1))',
    original: 'one < other',
    replacement: 'one <= other',
    reason: 'names are the keys of a map, so that no two are equal',
  },
  {
    file: 'core/routing/health/redis.ts',
    source: 'for (let index = 0; index + 1 < rest.length; index += 2) {',
    original: 'index + 1 < rest.length',
    replacement: 'index + 1 <= rest.length',
    reason: 'the script gives pairs, so that the length is even and the index too',
  },
  {
    file: 'core/routing/health/primary.ts',
    source:
      'if (held !== undefined && held.whose !== member && held.until > now) return Math.ceil(held.until - now);',
    original: 'held.until > now',
    replacement: 'held.until >= now',
    reason: 'a lease that ends in this very millisecond may count as held or as free',
  },
  {
    file: 'core/upstream/guarded/address.ts',
    source: 'const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];',
    original: '[]',
    replacement: '["Stryker was here"]',
    reason: 'only the second and the third entry are read, and there are none',
  },
  {
    file: 'core/upstream/guarded/address.ts',
    source: 'addresses?.some(({ address }) => canonical(address) === plain),',
    original: 'addresses?.some',
    replacement: 'addresses.some',
    reason: 'Node lists no interface without addresses; the compiler asks for the question mark',
  },
  {
    file: 'core/upstream/send.ts',
    source: "path: slash < 0 ? '/' : url.slice(slash),",
    original: 'slash < 0',
    replacement: 'slash <= 0',
    reason: 'the search begins behind the scheme of the URL, so that no slash is found at its first place',
  },
  {
    file: 'core/upstream/send.ts',
    source: 'connections.to(slash < 0 ? url : url.slice(0, slash), unused).dispatch(',
    original: 'slash < 0',
    replacement: 'slash <= 0',
    reason: 'the search begins behind the scheme of the URL, so that no slash is found at its first place',
  },
  {
    file: 'core/money/ledger/sqlite-reservations.ts',
    source: "const [day, month] = [periodStart('day', at), periodStart('month', at)];",
    original: "'month'",
    replacement: '""',
    reason: 'the start of every period but a day and the total is that of the month',
  },
  {
    file: 'plugins/model-access.ts',
    source: "if (allowed === undefined || call.operation === 'state') return checked(call, next, key);",
    original: 'allowed === undefined',
    replacement: 'false',
    reason: 'without a list every model matches; the line only spares the comparison',
  },
  {
    file: 'plugins/provider-objects/resumable.ts',
    source: 'if (!isId(id)) throw noObject(collection, id);',
    original: '!isId(id)',
    replacement: 'false',
    reason: 'the search for the object of the caller refuses what is no id in the same words',
  },
  {
    file: 'core/front/connections.ts',
    source: 'if (socket.bytesRead === 0 && now - openedAt > silence) socket.destroy();',
    original: 'now - openedAt > silence',
    replacement: 'now - openedAt >= silence',
    reason: 'a connection that is this old to the very millisecond may be closed now or with the next look',
  },
  {
    file: 'core/front/socket-connection.ts',
    source: 'this.#stream.cork();',
    original: 'this.#stream.cork();',
    replacement: ';',
    reason: 'the same bytes go out in the same order, in more packets',
  },
  {
    file: 'plugins/quota/needs.ts',
    source: 'else if (isObject(value))',
    original: 'isObject(value)',
    replacement: 'true',
    reason: 'what is neither a list nor null is an object here; the compiler asks for the check',
  },
  {
    file: 'plugins/model-access.ts',
    source:
      "if (call.operation !== 'realtime' || key === undefined || boundBy(key) === undefined) return next(call);",
    original: "call.operation !== 'realtime'",
    replacement: 'false',
    reason: 'a call that is no session has no messages to check, and is sent on as it is',
  },
  {
    file: 'plugins/quota/estimate.ts',
    source: 'body: prediction === undefined ? body : { ...body, prediction },',
    original: 'prediction === undefined',
    replacement: 'false',
    reason: 'a member that is undefined is none; the line only spares a copy',
  },
  {
    file: 'core/front/reply.ts',
    source: "case 'usage':",
    original: "'usage'",
    replacement: '""',
    reason:
      'no encoder writes anything when it hears usage; the line only spares the encoder while bytes pass',
  },
  {
    file: 'core/front/body.ts',
    source: "export const bodyReader = callKey<() => Promise<void>>('body reader');",
    original: "'body reader'",
    replacement: '""',
    reason: 'the name of a key is for people who look at it in a debugger',
  },
  {
    file: 'core/money/account/call-reservation.ts',
    source: 'isTaken = false;',
    original: 'false',
    replacement: 'true',
    reason:
      'the first reservation of a call is made after a release of what there is before, which sets it to false',
  },
  {
    file: 'plugins/rate-limit/index.ts',
    source: 'if (limited === undefined) {',
    original: 'limited === undefined',
    replacement: 'true',
    reason: 'the limits of a key are only remembered: made anew they are the same',
  },
  {
    file: 'plugins/rate-limit/limits.ts',
    source: 'if (difference !== 0) grant.correct(subject, difference);',
    original: 'difference !== 0',
    replacement: 'true',
    reason: 'a correction by nothing changes nothing',
  },
  {
    file: 'core/front/upgrade.ts',
    source: "query: mark < 0 ? '' : url.slice(mark + 1),",
    original: 'mark < 0',
    replacement: 'mark <= 0',
    reason: 'the URL of a request begins with a slash, so that no mark stands at its first place',
  },
  {
    file: 'core/front/aliases.ts',
    source: "const [path, query] = mark < 0 ? [url, ''] : [url.slice(0, mark), url.slice(mark + 1)];",
    original: 'mark < 0',
    replacement: 'mark <= 0',
    reason: 'the URL of a request begins with a slash, so that no mark stands at its first place',
  },
  {
    file: 'core/front/client-address.ts',
    source: "return text.length > longest ? [undefined] : text.split(',').map(addressIn);",
    original: '[undefined]',
    replacement: '[]',
    reason: 'a list without an address leaves the address of the connection, as an empty one does',
  },
  {
    file: 'core/front/client-address.ts',
    source: 'if (header.length > longest) return [undefined];',
    original: '[undefined]',
    replacement: '[]',
    reason: 'a list without an address leaves the address of the connection, as an empty one does',
  },
  {
    file: 'core/front/models.ts',
    source: 'toleratesComments: false,',
    original: 'false',
    replacement: 'true',
    reason: 'a model list is no stream, and comments stand in streams alone',
  },
  {
    file: 'core/front/request-line.ts',
    source: "origin: 'client',",
    original: "'client'",
    replacement: '""',
    reason: 'the error of a first line becomes a response at once, which has neither member',
  },
  {
    file: 'core/front/request-line.ts',
    source: 'retryable: false,',
    original: 'false',
    replacement: 'true',
    reason: 'the error of a first line becomes a response at once, which has neither member',
  },
  {
    file: 'core/performance/give-back.ts',
    source:
      'if (buffer instanceof ArrayBuffer && buffer.byteLength === piece.byteLength) buffer.transfer(0);',
    original: 'buffer.transfer(0);',
    replacement: ';',
    reason: 'only the memory comes back later',
  },
  {
    file: 'core/front/request-line.ts',
    source: "url = '',",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/app.ts',
    source: "const { url = '', method = '' } = request;",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/upgrade.ts',
    source: "const { headers, url = '' } = request;",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/upgrade.ts',
    source: "const path = url.split('?', 1)[0] ?? '';",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/upgrade.ts',
    source: "export function pathOf({ url = '' }: Pick<IncomingMessage, 'url'>): string {",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/refusal.ts',
    source: "{ url = '', headers: given }: IncomingMessage,",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/request-line.ts',
    source: "{ url = '', rawHeaders }: IncomingMessage,",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/readiness.ts',
    source: "const { headers, url = '' } = req;",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/sockets.ts',
    source: "request.url = resolvedUrl(this.#resolveAlias, request.url ?? '');",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/sockets.ts',
    source: "this.#isServed(resolvedUrl(this.#resolveAlias, request.url ?? ''))",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'Node gives every request a URL; the compiler asks for the default',
  },
  {
    file: 'core/front/sockets.ts',
    source: 'if (format === undefined) socket.destroy();',
    original: 'format === undefined',
    replacement: 'false',
    reason:
      'the format of errors, as that of a path with a socket, is always there; the compiler asks for the check',
  },
  {
    file: 'core/front/tunnels.ts',
    source: 'if (path === undefined) socket.destroy();',
    original: 'socket.destroy();',
    replacement: ';',
    reason:
      'the server of WebSockets is asked for paths alone that have a format; the compiler asks for the check',
  },
  {
    file: 'core/front/tunnels.ts',
    source: 'if (path === undefined) socket.destroy();',
    original: 'path === undefined',
    replacement: 'false',
    reason:
      'the server of WebSockets is asked for paths alone that have a format; the compiler asks for the check',
  },
  {
    file: 'core/money/ledger/postgres.ts',
    source: 'if (line !== undefined) line.push(waiting);',
    original: 'line !== undefined',
    replacement: 'false',
    reason:
      'a claim that is asked for alone has the same answer; only the number of questions to the database is another',
  },
  {
    file: 'core/money/rates/memory.ts',
    source: 'if ((looked += 1) === 2) return;',
    original: '(looked += 1) === 2',
    replacement: 'false',
    reason: 'subjects that have been idle for a minute count nothing; they are only forgotten sooner',
  },
  {
    file: 'core/money/usage-log/attempt-rows.ts',
    source: "channel: text(channel) ?? '',",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is never missing here; the compiler asks for the default',
  },
  {
    file: 'core/money/usage-log/attempt-rows.ts',
    source: "code: text(failure) ?? '',",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is never missing here; the compiler asks for the default',
  },
  {
    file: 'core/money/usage-log/failed-attempts.ts',
    source: "model: String(row?.['model'] ?? ''),",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is never missing here; the compiler asks for the default',
  },
  {
    file: 'core/money/usage-log/failed-attempts.ts',
    source: "code: String(row?.['code'] ?? ''),",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is never missing here; the compiler asks for the default',
  },
  {
    file: 'core/money/usage-log/failed-attempts.ts',
    source: "message: String(row?.['message'] ?? ''),",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is never missing here; the compiler asks for the default',
  },
  {
    file: 'core/upstream/credentials/client-answer.ts',
    source: 'return fault !== undefined && own.has(fault);',
    original: 'fault !== undefined',
    replacement: 'true',
    reason: 'no fault is a key of the map; the compiler asks for the check',
  },
  {
    file: 'core/upstream/credentials/client-answer.ts',
    source: "return whole?.toString() ?? '';",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is never missing here; the compiler asks for the default',
  },
  {
    file: 'core/upstream/credentials/renewed.ts',
    source: 'if (value === undefined || left <= 0) return this.#next();',
    original: 'value === undefined',
    replacement: 'false',
    reason:
      'nothing is good for no time, so that the second condition says the same; the compiler asks for the first',
  },
  {
    file: 'core/upstream/credentials/access-tokens.ts',
    source: "if (this.#tokens.length > mostHidden) forgetSecret(this.#tokens.shift() ?? '');",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is never missing here; the compiler asks for the default',
  },
  {
    file: 'core/upstream/body-edits.ts',
    source: "const last = names.at(-1) ?? '';",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is never missing here; the compiler asks for the default',
  },
  {
    file: 'core/upstream/body-edits.ts',
    source: ": isIndex(names[depth + 1] ?? '')",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the value is missing behind the last name alone, which is judged before',
  },
  {
    file: 'core/upstream/body.ts',
    source:
      "if (typeof body === 'string') return body.length < largeBody / 3 ? { body } : bytesBody(Buffer.from(body));",
    original: 'body.length < largeBody / 3',
    replacement: 'body.length <= largeBody / 3',
    reason: 'the same bytes are sent, as a text or as a buffer',
  },
  {
    file: 'core/upstream/body.ts',
    source:
      "if (typeof body === 'string') return body.length < largeBody / 3 ? { body } : bytesBody(Buffer.from(body));",
    original: 'body.length < largeBody / 3',
    replacement: 'false',
    reason: 'the same bytes are sent, as a text or as a buffer',
  },
  {
    file: 'core/upstream/reader.ts',
    source:
      "new GatewayError('upstream_cut', 'The upstream closed the connection.', { origin: 'upstream' }),",
    original: "'upstream_cut'",
    replacement: '""',
    reason: 'an answer that ends has begun, unless it ends with an error; the compiler asks for the other',
  },
  {
    file: 'core/upstream/reader.ts',
    source:
      "new GatewayError('upstream_cut', 'The upstream closed the connection.', { origin: 'upstream' }),",
    original: "{ origin: 'upstream' }",
    replacement: '{}',
    reason: 'an answer that ends has begun, unless it ends with an error; the compiler asks for the other',
  },
  {
    file: 'core/upstream/reader.ts',
    source:
      "new GatewayError('upstream_cut', 'The upstream closed the connection.', { origin: 'upstream' }),",
    original: "'upstream'",
    replacement: '""',
    reason: 'an answer that ends has begun, unless it ends with an error; the compiler asks for the other',
  },
  {
    file: 'core/upstream/guarded/connection.ts',
    source: 'else request.destroy(notOpen());',
    original: 'request.destroy(notOpen());',
    replacement: ';',
    reason: 'the connection is made to checked addresses alone, so that its other end is one of them',
  },
  {
    file: 'plugins/provider-objects/create.ts',
    source: 'models: model === undefined ? [] : [model],',
    original: 'model === undefined',
    replacement: 'false',
    reason: 'a list of nothing chooses the place that an empty list does',
  },
  {
    file: 'plugins/provider-objects/references.ts',
    source:
      "if (typeof member === 'object' && member !== null) walk.rest.push({ value: member, path: at, isMade });",
    original: "typeof member === 'object' && member !== null",
    replacement: 'true',
    reason: 'what is neither an object nor a list is left when its turn comes; the line only spares the turn',
  },
  {
    file: 'plugins/provider-objects/batches.ts',
    source: "add('POST', ofGenerateContent, '/:id\\\\:cancel', (call, _, { id = '' }) =>",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the router gives each path its parameters; the compiler asks for the default',
  },
  {
    file: 'plugins/provider-objects/batches.ts',
    source: "handle: async (call: Call, { model = '' }) =>",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the router gives each path its parameters; the compiler asks for the default',
  },
  {
    file: 'plugins/provider-objects/endpoints.ts',
    source: "add(changes, collection, '/:id', async (call, _, { id = '' }) => {",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the router gives each path its parameters; the compiler asks for the default',
  },
  {
    file: 'plugins/provider-objects/endpoints.ts',
    source: "add('DELETE', collection, '/:id', async (call, _, { id = '' }) => {",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the router gives each path its parameters; the compiler asks for the default',
  },
  {
    file: 'plugins/provider-objects/endpoints.ts',
    source: "async (call, _, { id = '', rest = '' }) => {",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the router gives each path its parameters; the compiler asks for the default',
  },
  {
    file: 'plugins/provider-objects/file-search.ts',
    source: "add('POST', stores, '/:id\\\\:importFile', async (call, _, { id = '' }) => {",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the router gives each path its parameters; the compiler asks for the default',
  },
  {
    file: 'plugins/provider-objects/resumable.ts',
    source: "handle: (call: Call, { store = '' }) => {",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the router gives each path its parameters; the compiler asks for the default',
  },
  {
    file: 'plugins/provider-objects/resumable.ts',
    source: "handle: async (call: Call, { id = '' }) => {",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'the router gives each path its parameters; the compiler asks for the default',
  },
  {
    file: 'plugins/provider-objects/batch-model.ts',
    source:
      "function withMember(object: JsonObject, [name = '', ...rest]: readonly string[], value: string): JsonObject {",
    original: "''",
    replacement: '"Stryker was here!"',
    reason: 'a path has at least one name; the compiler asks for the default',
  },
  {
    file: 'core/upstream/guarded/fetch.ts',
    source: 'return () => response.destroy();',
    original: '() => response.destroy()',
    replacement: '() => undefined',
    reason: 'the request is destroyed in the same turn, with its response',
  },
  {
    file: 'core/upstream/addresses/members.ts',
    source: 'if (folded.length > longestName) return addressRows.find((row) => fits(row, folded, within));',
    original: 'folded.length > longestName',
    replacement: 'true',
    reason: 'the same row is found; it is only not remembered',
  },
  {
    file: 'core/upstream/addresses/members.ts',
    source: 'if (folded.length > longestName) return addressRows.find((row) => fits(row, folded, within));',
    original: 'folded.length > longestName',
    replacement: 'folded.length >= longestName',
    reason: 'the same row is found; it is only not remembered',
  },
  {
    file: 'plugins/provider-objects/account.ts',
    source: 'if (channel === undefined || key === undefined)',
    original: 'channel === undefined',
    replacement: 'false',
    reason: 'without a channel there is no key of one; the compiler asks for the check',
  },
  {
    file: 'plugins/provider-objects/account.ts',
    source: 'return channel === undefined || key === undefined ? undefined : { channel, key };',
    original: 'channel === undefined',
    replacement: 'false',
    reason: 'without a channel there is no key of one; the compiler asks for the check',
  },
  {
    file: 'core/upstream/body-edits.ts',
    source: 'if (isLast || !isContainer(next)) return;',
    original: 'isLast || !isContainer(next)',
    replacement: 'false',
    reason: 'the loop ends behind the last name by itself; the compiler asks for the check',
  },
  {
    file: 'plugins/provider-objects/request-lines.ts',
    source: 'if (!isRead) passed.push(this.#lines.take());',
    original: 'passed.push(this.#lines.take());',
    replacement: ';',
    reason: 'what is held is taken in the same call, with the bytes behind it',
  },
];

/** Returns the entry for a mutant. */
export function acceptedEntry(mutant: Mutant, entries: readonly Accepted[] = accepted): Accepted | undefined {
  const members = ['file', 'source', 'original', 'replacement'] as const;
  return entries.find((entry) => members.every((member) => entry[member] === mutant[member]));
}

/** Returns the entries below the folders that fit none of the mutants in them. */
export function withoutMutant(
  mutants: readonly Mutant[],
  isBelow: (file: string) => boolean,
  entries: readonly Accepted[] = accepted,
): Accepted[] {
  return entries.filter(
    (entry) => isBelow(entry.file) && !mutants.some((mutant) => acceptedEntry(mutant, [entry])),
  );
}
