import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testPlugins } from 'sluice/testing';
import poweredBy from '../plugins/powered-by.ts';

test('replies tell by whom they were served', async (t) => {
  const tested = await testPlugins(poweredBy({ name: 'us' }));
  t.after(() => tested.close());
  const { headers, text } = await tested.run('Hello', { reply: 'Good day.' });
  assert.equal(headers['x-powered-by'], 'us');
  assert.equal(text, 'Good day.');
});
