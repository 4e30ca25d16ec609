import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ToolCatalog } from '../../../plugins/mcp-tools/catalog.ts';
import type { ChosenServer } from '../../../plugins/mcp-tools/choose.ts';
import type { ServedTool } from '../../../plugins/mcp/servers/index.ts';
import { tries } from '../../support/tries.ts';

const server = (label: string): ChosenServer => ({
  label,
  server: {} as ChosenServer['server'],
  price: 0,
  allows: () => true,
  needsApproval: () => false,
});
const tool = (name: string): ServedTool => ({ name, inputSchema: { type: 'object' } });

const name = fc.oneof(
  fc.string({ minLength: 1, maxLength: 128, unit: 'grapheme' }),
  fc.constantFrom('a', 'a.b', 'a b', 'b_a', 'x'.repeat(128)),
);
const servers = fc.uniqueArray(fc.record({ label: name, tools: fc.uniqueArray(name, { maxLength: 8 }) }), {
  selector: ({ label }) => label,
  maxLength: 5,
});

describe('functions for tools of servers', () => {
  test('have names that every provider takes, each once, and lead back to their tools', () => {
    fc.assert(
      fc.property(servers, fc.uniqueArray(name, { maxLength: 4 }), (list, taken) => {
        const catalog = new ToolCatalog(
          list.map(({ label, tools }) => ({ server: server(label), tools: tools.map(tool) })),
          taken,
        );
        const names = catalog.functions.map((one) => one.name);
        expect(new Set([...names, ...taken]).size).toBe(names.length + taken.length);
        for (const one of names) expect(one).toMatch(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);
        for (const { label, tools } of list)
          for (const own of tools)
            expect(catalog.named(catalog.ofServer(label, own)?.name ?? '')?.tool.name).toBe(own);
      }),
      { numRuns: tries(1_000) },
    );
  });
});
