import { EMPTY, firstValueFrom, from, Subject, toArray, type Observable } from 'rxjs';
import { GatewayError, type Call, type GatewayEvent } from 'sluice';
import { describe, expect, test } from 'vitest';
import { checkMessages } from '../../../core/sdk/check-messages.ts';
import { Gate } from '../../../core/sdk/gate.ts';
import type { SocketMessage } from '../../../core/model/realtime.ts';

const message = (text: string): SocketMessage => ({ data: Buffer.from(text), binary: false });

/** A session with these messages, in a format whose failures are the error itself. */
function session(input: Observable<SocketMessage> | undefined, operations = ['realtime']) {
  const errors: GatewayError[] = [];
  const tunnels = operations.map((operation) => ({
    operation,
    failure(error: GatewayError) {
      errors.push(error);
      return 'refused';
    },
  }));
  const call = {
    id: 'req_1',
    operation: 'realtime',
    format: { name: 'acme', tunnels },
    input,
    inputGate: new Gate(),
    gate: new Gate(),
    with: (edits: object) => ({ ...call, ...edits }),
  } as unknown as Call;
  return { call, errors };
}

describe('messages of a session', () => {
  test('that are refused keep everything that the author said of the error', async () => {
    const cause = new Error('the list is old');
    const { call, errors } = session(
      from([message('{"event_id":"e1"}'), message('[]'), message('{"ok":true}')]),
    );
    const sent: string[] = [];
    const ended = new Subject<GatewayEvent>();
    const events = await checkMessages(
      call,
      async (own) => {
        own.input?.subscribe({
          next: ({ data }) => sent.push(data.toString()),
          complete: () => ended.complete(),
        });
        return ended;
      },
      {
        concerns: () => true,
        check(event) {
          if (event.event_id === undefined) return;
          throw new GatewayError('forbidden', 'No.', {
            param: 'session',
            retryAfter: 7,
            status: 409,
            details: { hint: 'x' },
            headers: { 'x-a': 'b' },
            cause,
          });
        },
        failure: 'Cannot be checked now.',
      },
    );
    await firstValueFrom(events.pipe(toArray()));
    expect(sent).toEqual(['[]', '{"ok":true}']);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({
      code: 'forbidden',
      message: 'No.',
      param: 'session',
      retryAfter: 7,
      status: 409,
      details: { hint: 'x', event_id: 'e1' },
      headers: { 'x-a': 'b' },
      cause,
    });
  });

  test('are not sent unchecked where the format has no way to tell of a failure', async () => {
    const rule = { concerns: () => true, check: () => {}, failure: '' };
    const { call } = session(EMPTY, []);
    await expect(checkMessages(call, async () => EMPTY, rule)).rejects.toThrow('cannot be checked');
    const { call: chat } = session(undefined, []);
    expect(await checkMessages(chat, async () => EMPTY, rule)).toBe(EMPTY);
  });
});
