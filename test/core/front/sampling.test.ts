import { describe, expect, test } from 'vitest';
import { BudgetShare } from '../../../core/front/byte-budget.ts';
import { applySampling, requestLosses } from '../../../core/front/sampling.ts';
import { understandJson } from '../../../core/front/json-body.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';

const budget = { most: Infinity, take() {}, giveBack() {} };
const options = {
  limits: { body: 1e6, depth: 16, values: 1e5, members: 1e3 },
  held: new BudgetShare(budget),
};

/** A request that came with this body, after the setting `sampling` was applied. */
async function applied(body: JsonObject, sampling: 'exclusive' | 'forward' | 'refuse') {
  const { exchange } = await makeCall({ body });
  understandJson(exchange, Buffer.from(JSON.stringify(body)), options);
  applySampling(exchange, sampling, options);
  const result = { wire: exchange.wire, losses: exchange.values.get(requestLosses) };
  exchange.end();
  return result;
}

describe('temperature and top_p in one request', () => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], temperature: 0, top_p: 0.95 };

  test('leave the temperature, and the other is told as lost', async () => {
    const { wire, losses } = await applied(body, 'exclusive');
    const { top_p: _, ...rest } = body;
    expect(wire.body).toEqual(rest);
    expect(JSON.parse(wire.bytes.toString())).toEqual(rest);
    expect(losses).toEqual([
      { path: 'top_p', kind: 'setting', from: 'chat-completions', to: 'chat-completions' },
    ]);
  });

  test('both go on where the operator forwards them, and are refused where the operator refuses them', async () => {
    const { wire, losses } = await applied(body, 'forward');
    expect([wire.body, losses]).toEqual([body, undefined]);
    await expect(applied(body, 'refuse')).rejects.toMatchObject({ status: 400, param: 'top_p' });
  });

  test('alone are as they came', async () => {
    const { top_p: _, ...one } = body;
    for (const sampling of ['exclusive', 'refuse'] as const) {
      // oxlint-disable-next-line no-await-in-loop
      const { wire, losses } = await applied(one, sampling);
      expect([wire.body, losses]).toEqual([one, undefined]);
    }
  });
});
