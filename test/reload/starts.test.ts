import { expect, test } from 'vitest';
import { patience } from '../support/patience.ts';
import { everything } from '../support/tries.ts';
import { tryStarts } from './starts.ts';

// test/flows/start-fails-late.test.ts connects while one starts; several at once are tried by `npm run fuzz`.
test.skipIf(!everything)(
  'gateways that start at the same time on a busy machine serve every connection from their first response on',
  async () => {
    const result = await tryStarts({
      starts: 3,
      atOnce: 3,
      connections: 20,
      patience: patience.wait,
      print: () => {},
    });
    expect(result).toEqual({
      starts: 3,
      failedStarts: 0,
      connections: 63,
      failedConnections: 0,
      wrongExits: 0,
      reasons: [],
    });
  },
);
