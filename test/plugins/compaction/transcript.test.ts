import { expect, test } from 'vitest';
import { transcript } from '../../../plugins/compaction/transcript.ts';

test('a conversation becomes messages that any model can read', () => {
  const image = { type: 'input_image', image_url: 'https://example.com/a.png' };
  expect(
    transcript([
      { type: 'message', role: 'developer', id: 'msg_0', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'input_text', text: 'What is this?' }, image] },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'secret' },
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Let me look.', annotations: [] }],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'zoom', arguments: '{"x":1}' },
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c2', name: 'exec', input: 'ls' },
      { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'a cat' }, image] },
      { type: 'custom_tool_call_output', call_id: 'c2', output: 'file.txt' },
      { type: 'local_shell_call', id: 'l', call_id: 'c3', status: 'completed', action: { command: ['ls'] } },
      { type: 'local_shell_call_output', id: 'c3', output: 'file.txt' },
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'cats' } },
      { type: 'additional_tools', role: 'developer', tools: [] },
    ]),
  ).toEqual([
    { type: 'message', role: 'developer', content: 'Be brief.' },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'What is this?' }, image] },
    { type: 'message', role: 'assistant', content: 'Let me look.' },
    { type: 'message', role: 'assistant', content: '[called zoom] {"x":1}' },
    { type: 'message', role: 'assistant', content: '[called exec] ls' },
    {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: '[result of zoom] a cat' }, image],
    },
    { type: 'message', role: 'user', content: '[result of exec] file.txt' },
    { type: 'message', role: 'assistant', content: '[called local_shell] {"action":{"command":["ls"]}}' },
    { type: 'message', role: 'user', content: '[result of local_shell] file.txt' },
    {
      type: 'message',
      role: 'assistant',
      content: '[called web_search] {"action":{"type":"search","query":"cats"}}',
    },
  ]);
});

test('a result without end is shortened in its middle', () => {
  const [item] = transcript([
    { type: 'function_call_output', call_id: 'c', output: `begin${'x'.repeat(1_000_000)}end` },
  ]);
  const text = String(item?.content);
  expect(text.length).toBeLessThan(21_000);
  expect(text).toMatch(/^\[result of function_call\] begin/);
  expect(text).toContain('980008 characters left out');
  expect(text.endsWith('end')).toBe(true);
});
