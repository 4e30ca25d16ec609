import { testPlugins } from 'sluice/testing';
import { expect, onTestFinished, test } from 'vitest';
import requestId, { clientRequestId } from '../../plugins/request-id.ts';

async function kept(headers: Record<string, string>): Promise<string | undefined> {
  const tested = await testPlugins(requestId);
  onTestFinished(() => tested.close());
  return (await tested.run({ headers })).left(clientRequestId);
}

test("keeps the client's own id for the log", async () => {
  expect(await kept({ 'x-request-id': 'abc-1' })).toBe('abc-1');
  expect(await kept({ 'x-client-request-id': 'mine', 'x-request-id': 'a-proxy' })).toBe('mine');
  expect(await kept({})).toBeUndefined();
});

test('passes over what is too long, or could write into the log', async () => {
  expect(await kept({ 'x-request-id': 'a'.repeat(201) })).toBeUndefined();
  expect(await kept({ 'x-request-id': 'two words' })).toBeUndefined();
  expect(await kept({ 'x-client-request-id': '', 'x-request-id': 'next' })).toBe('next');
});
