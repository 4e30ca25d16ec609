import { describe, expect, test } from 'vitest';
import type { JsonValue } from '../../../core/model/json.ts';
import { officialForm, readContextManagement } from '../../../plugins/compaction/context-management.ts';

describe('context_management', () => {
  test.each<[string, JsonValue | undefined, unknown]>([
    ['nothing', undefined, undefined],
    ['null', null, undefined],
    ['the official form', [{ type: 'compaction', compact_threshold: 2000 }], { threshold: 2000 }],
    ['the official form without a number', [{ type: 'compaction', compact_threshold: null }], {}],
    ['an empty list', [], undefined],
    ['an object', { type: 'compaction', compact_threshold: 2000 }, { threshold: 2000 }],
    ['a threshold alone', { compact_threshold: 2000 }, { threshold: 2000 }],
    ['a member', { compaction: { threshold: 2000 } }, { threshold: 2000 }],
    ['a member, spelled officially', { compaction: { compact_threshold: 2000 } }, { threshold: 2000 }],
    ['a strategy', { strategy: 'auto' }, {}],
    ['the other strategy', { strategy: 'compaction' }, {}],
    ['a word', 'auto', {}],
    ['none', { type: 'none' }, undefined],
    ['none as a strategy', { strategy: 'none' }, undefined],
    ['disabled', { strategy: 'disabled' }, undefined],
    ['an edit', { edits: [{ type: 'compact_20260112' }] }, {}],
    [
      'an edit with everything',
      {
        edits: [
          {
            type: 'compact_20260112',
            trigger: { type: 'input_tokens', value: 5000 },
            instructions: 'Keep the names.',
            pause_after_compaction: true,
          },
        ],
      },
      { threshold: 5000, instructions: 'Keep the names.', pause: true },
    ],
  ])('%s', (_name, value, compaction) => {
    expect(readContextManagement(value)).toEqual(
      compaction === undefined ? { lost: [] } : { compaction, lost: [] },
    );
  });

  test('edits that clear single items are named as lost, and the others still count', () => {
    const edits = [
      { type: 'clear_tool_uses_20250919', keep: { type: 'tool_uses', value: 3 } },
      { type: 'compact_20260112', trigger: { type: 'input_tokens', value: 5000 } },
      { type: 'clear_thinking_20251015' },
    ];
    expect(readContextManagement({ edits })).toEqual({
      compaction: { threshold: 5000 },
      lost: ['context_management.edits[0]', 'context_management.edits[2]'],
    });
  });

  test.each<[JsonValue, string]>([
    ['sometimes', 'context_management'],
    [{ strategy: 'sometimes' }, 'context_management.strategy'],
    [{ type: 'sometimes' }, 'context_management.type'],
  ])('%j is not done, and named as lost', (value, path) => {
    expect(readContextManagement(value)).toEqual({ lost: [path] });
  });

  test.each<[JsonValue, string]>([
    [[{ type: 'sometimes' }], 'context_management[0].type'],
    [['compaction'], 'context_management[0]'],
    [12, 'context_management'],
    [[{ type: 'compaction', compact_threshold: 'much' }], 'context_management[0].compact_threshold'],
    [{ compact_threshold: 0 }, 'context_management.compact_threshold'],
    [{ compaction: { threshold: 1.5 } }, 'context_management.compaction.threshold'],
    [
      { edits: [{ type: 'compact_20260112', trigger: { type: 'input_tokens', value: -1 } }] },
      'context_management.edits[0].trigger.value',
    ],
    [{ edits: [null] }, 'context_management.edits[0]'],
  ])('%j is refused by name', (value, param) => {
    expect(() => readContextManagement(value)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('is told a provider in the official form', () => {
    expect(officialForm({ threshold: 7, instructions: 'x' })).toEqual([
      { type: 'compaction', compact_threshold: 7 },
    ]);
    expect(officialForm({})).toEqual([{ type: 'compaction' }]);
  });
});
