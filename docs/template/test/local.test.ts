import { test } from 'node:test';
import { channelCases } from 'sluice/testing';
import local from '../channels/local.ts';

const cases = channelCases({
  channel: ({ url, key }) => local({ baseUrl: `${url}/v1`, key, models: ['test-model'] }),
});
for (const { name, run } of cases) test(`local ${name}`, run);
