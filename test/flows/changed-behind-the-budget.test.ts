import { of } from 'rxjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { definePlugin, gathered, type GatewayEvent, type Budget } from 'sluice';
import demo from '../../channels/demo/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { eventually } from '../support/eventually.ts';

/** Does with a call what its header says, behind the plugins that have let it in and reserved what it may cost. */
const changing = definePlugin({
  name: 'changing',
  stage: 'shape',
  setup: () =>
    async function changes(call, next) {
      switch (call.wire.headers['x-edit']) {
        case 'dear':
          return next(call.with({ model: 'dear' }));
        case 'dear or cheap':
          return next(call.with({ model: 'dear' })).catch(() => next(call));
        case 'longer':
          return next(call.with({ settings: { maxOutput: 1_000_000 } }));
        case 'a question before': {
          const body = { model: 'cheap', max_tokens: 5, messages: [{ role: 'user', content: 'first' }] };
          await gathered(call, await next(call.with({ body, decoded: true })));
          return next(call);
        }
        case 'nobody':
          return of<GatewayEvent[]>(
            { type: 'head', id: call.id, model: call.model },
            { type: 'usage', usage: { input: 50, output: 50, cacheRead: 0, cacheWrite: 0, reasoning: 0 } },
          );
        default:
          return next(call);
      }
    },
});

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({
    channels: [demo({ models: ['cheap', 'dear'] })],
    plugins: [changing()],
    prices: { cheap: { input: 1, output: 1 }, dear: { input: 1_000, output: 1_000 } },
  });
});
afterAll(() => gateway.close());

const total = (unit: Budget['unit'], amount: number): Budget[] => [{ unit, period: 'total', amount }];

/** Runs a call with a budget. Returns its status, and the spent and reserved amounts after its end. */
async function spend(edit: string, budgets: Budget[], stream = false) {
  const { value, record } = await gateway.apiKeys.create({ name: 'spender', budgets });
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json', 'x-edit': edit },
    body: JSON.stringify({
      model: 'cheap',
      max_tokens: 10,
      stream,
      messages: [{ role: 'user', content: 'hello to you' }],
    }),
  });
  const text = await response.text();
  const ledger = openLedger(gateway.stores);
  // It is charged in the next turns.
  const state = await eventually(async () => {
    const [found] = await ledger.states(record.id, budgets);
    expect(found?.reserved).toBe(0);
    return found;
  });
  return { status: response.status, text, spent: state?.spent ?? -1 };
}

describe.each([false, true])(
  'a call that a plugin changes once its budget was asked (stream: %s)',
  (stream) => {
    test('is charged at the price of the model that answers', async () => {
      const [plain, dear] = [
        await spend('', total('micro-dollar', 1e9), stream),
        await spend('dear', total('micro-dollar', 1e9), stream),
      ];
      expect([plain.status, dear.status]).toEqual([200, 200]);
      expect(plain.spent).toBeGreaterThan(0);
      expect(dear.spent).toBeGreaterThanOrEqual(plain.spent * 500);
    });

    test('is refused where the other model no longer fits, and may then be sent as it was', async () => {
      const small = total('micro-dollar', 1_000);
      expect(await spend('', small, stream)).toMatchObject({ status: 200 });
      expect(await spend('dear', small, stream)).toMatchObject({ status: 429, spent: 0 });
      const { status, spent } = await spend('dear or cheap', small, stream);
      expect(status).toBe(200);
      expect(spent).toBeGreaterThan(0);
      expect(spent).toBeLessThanOrEqual(1_000);
    });

    test('never spends more than its budget, though the plugin asks for more', async () => {
      const { spent } = await spend('longer', total('token', 200), stream);
      expect(spent).toBeLessThanOrEqual(200);
    });

    test('pays for what the plugin asks for besides, and for nothing that the plugin answers by itself', async () => {
      const once = await spend('', total('token', 1e6), stream);
      const twice = await spend('a question before', total('token', 1e6), stream);
      const never = await spend('nobody', total('token', 1e6), stream);
      expect(once.spent).toBeGreaterThan(0);
      expect(twice.spent).toBeGreaterThan(once.spent);
      expect(never).toMatchObject({ status: 200, spent: 0 });
    });
  },
);
