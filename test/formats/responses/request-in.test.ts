import { describe, expect, it } from 'vitest';
import { sealProof } from '../../../core/formats/_shared/proof.ts';
import { toolSpellings } from '../../../core/formats/responses/tools/spelling.ts';
import { blocksOf, decode, errorOf } from './support.ts';

const f = { type: 'function', name: 'f', parameters: { type: 'object' } };

describe('the conversation', () => {
  it('may be one string', () => {
    expect(decode({ input: 'Hi' }).messages).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'Hi' }], plain: true },
    ]);
  });

  it('begins with the instructions, then with what system and developer say before the first turn', () => {
    const { system, messages } = decode({
      instructions: 'A',
      input: [
        { role: 'system', content: 'B' },
        { role: 'developer', content: [{ type: 'input_text', text: 'C' }] },
        { role: 'user', content: 'Hi' },
        { role: 'developer', content: 'D' },
      ],
    });
    expect(system.map(({ content }) => content)).toMatchObject([
      [{ text: 'A' }],
      [{ text: 'B' }],
      [{ text: 'C' }],
    ]);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'system']);
  });

  it('has instructions of developers also behind the tools that an agent adds', () => {
    const { system, tools } = decode({
      input: [
        { type: 'additional_tools', role: 'developer', tools: [f] },
        { role: 'developer', content: 'A' },
        { role: 'user', content: 'Hi' },
      ],
    });
    expect(system).toHaveLength(1);
    expect(tools).toMatchObject([{ type: 'function', name: 'f', at: 'input[0].tools[0]' }]);
  });

  it('takes reasoning from what was thought, else from its summary, and its proof from the provider', () => {
    const blocks = blocksOf(
      decode({
        input: [
          {
            type: 'reasoning',
            summary: [
              { type: 'summary_text', text: 'a' },
              { type: 'summary_text', text: 'b' },
            ],
            encrypted_content: 'x',
          },
          {
            type: 'reasoning',
            summary: [{ type: 'summary_text', text: 's' }],
            content: [{ type: 'reasoning_text', text: 'raw' }],
          },
          { type: 'reasoning', summary: [], encrypted_content: '' },
        ],
      }),
    );
    expect(blocks).toMatchObject([
      { type: 'reasoning', text: 'a\n\nb', proof: { format: 'responses', kind: 'encrypted', value: 'x' } },
      { type: 'reasoning', text: 'raw' },
      { type: 'reasoning', text: '' },
    ]);
    expect(blocks.map((block) => 'proof' in block)).toEqual([true, false, false]);
  });

  it('gives the proof of another provider back that the gateway had sealed', () => {
    const proof = { format: 'messages', kind: 'signature', value: 'sig' } as const;
    const [block] = blocksOf(
      decode({
        input: [
          {
            type: 'reasoning',
            summary: [{ type: 'summary_text', text: 'Hm' }],
            encrypted_content: sealProof(proof),
          },
        ],
      }),
    );
    expect(block).toMatchObject({ text: 'Hm', proof });
  });

  it('names calls in a namespace by both names, and keeps free text as it is', () => {
    expect(
      blocksOf(
        decode({
          input: [
            { type: 'function_call', call_id: 'c1', namespace: 'n', name: 'f', arguments: '{"a":1}' },
            { type: 'custom_tool_call', call_id: 'c2', name: 'sh', input: 'ls -l' },
            { type: 'custom_tool_call_output', call_id: 'c2', output: 'a.txt' },
          ],
        }),
      ),
    ).toMatchObject([
      { type: 'tool-call', id: 'c1', name: 'n__f', input: '{"a":1}' },
      { type: 'tool-call', id: 'c2', name: 'sh', input: 'ls -l', custom: true },
      { type: 'tool-result', id: 'c2', content: [{ text: 'a.txt' }], plain: true, custom: true },
    ]);
  });

  it('reads calls of the tools that the client runs itself as calls of functions', () => {
    expect(
      blocksOf(
        decode({
          input: [
            { type: 'local_shell_call', id: 'lsh_1', action: { type: 'exec', command: ['ls'], env: {} } },
            { type: 'local_shell_call_output', id: 'lsh_1', output: 'a.txt' },
            { type: 'shell_call', call_id: 'c2', action: { commands: ['ls'] } },
            {
              type: 'shell_call_output',
              call_id: 'c2',
              output: [{ stdout: 'x', stderr: '', outcome: { type: 'timeout' } }],
            },
            { type: 'apply_patch_call', call_id: 'c3', operation: { type: 'delete_file', path: 'a' } },
            { type: 'apply_patch_call_output', call_id: 'c3', status: 'failed', output: 'no' },
          ],
        }),
      ),
    ).toMatchObject([
      {
        type: 'tool-call',
        id: 'lsh_1',
        name: 'local_shell',
        input: '{"type":"exec","command":["ls"],"env":{}}',
      },
      { type: 'tool-result', id: 'lsh_1', content: [{ text: 'a.txt' }] },
      { type: 'tool-call', id: 'c2', name: 'shell', input: '{"commands":["ls"]}' },
      {
        type: 'tool-result',
        id: 'c2',
        content: [{ text: '[{"stdout":"x","stderr":"","outcome":{"type":"timeout"}}]' }],
      },
      { type: 'tool-call', id: 'c3', name: 'apply_patch', input: '{"type":"delete_file","path":"a"}' },
      { type: 'tool-result', id: 'c3', content: [{ text: 'no' }], failed: true },
    ]);
  });

  it('can do without the records of hosted tools, but not without what asks for an answer', () => {
    const items = [
      'web_search_call',
      'mcp_call',
      'computer_call',
      'compaction',
      'mcp_approval_response',
      'of_tomorrow',
    ];
    expect(
      decode({ input: items.map((type) => ({ type })) }).messages.map(({ role, content: [block] }) => [
        role,
        block?.type === 'opaque' && block.spare === true,
      ]),
    ).toEqual([
      ['assistant', true],
      ['assistant', true],
      ['assistant', false],
      ['assistant', false],
      ['user', false],
      ['assistant', false],
    ]);
  });

  it('carries images, files and sound in all their shapes', () => {
    expect(
      blocksOf(
        decode({
          input: [
            {
              role: 'user',
              content: [
                { type: 'input_image', image_url: 'data:image/png;base64,aaaa', detail: 'low' },
                { type: 'input_image', image_url: { url: 'https://example.com/a' } },
                { type: 'input_image', file_id: 'file_1' },
                { type: 'input_file', file_data: 'JVBERi0=', filename: 'a.pdf' },
                { type: 'input_file', file_url: 'https://example.com/b' },
                { type: 'input_audio', input_audio: { data: 'aaaa', format: 'mp3' } },
                { type: 'refusal', refusal: 'No.' },
                { type: 'hologram' },
              ],
            },
          ],
        }),
      ),
    ).toMatchObject([
      { type: 'image', source: { kind: 'data', data: 'aaaa', mimeType: 'image/png' }, detail: 'low' },
      { type: 'image', source: { kind: 'url', url: 'https://example.com/a' } },
      { type: 'image', source: { kind: 'file', id: 'file_1', format: 'responses' } },
      {
        type: 'file',
        source: { kind: 'data', data: 'JVBERi0=', mimeType: 'application/pdf' },
        name: 'a.pdf',
      },
      { type: 'file', source: { kind: 'url', url: 'https://example.com/b' } },
      { type: 'audio', source: { kind: 'data', data: 'aaaa', mimeType: 'audio/mp3' } },
      { type: 'refusal', text: 'No.' },
      { type: 'opaque', format: 'responses' },
    ]);
  });
});

describe('tools', () => {
  it('are found in namespaces, in the input, and among those that the client runs', () => {
    const body = {
      tools: [
        f,
        { type: 'namespace', name: 'n', description: 'd', tools: [f, { type: 'custom', name: 'c' }] },
        { type: 'local_shell' },
        { type: 'shell', environment: { type: 'container_auto' } },
        { type: 'web_search_preview', search_context_size: 'low' },
        { type: 'code_interpreter', container: { type: 'auto' } },
        { type: 'file_search', vector_store_ids: [] },
      ],
      input: [{ type: 'additional_tools', role: 'developer', tools: [{ type: 'apply_patch' }, f] }],
    };
    expect(decode(body).tools.map(({ type, name, at }) => [type, name, at])).toEqual([
      ['function', 'f', 'tools[0]'],
      ['function', 'n__f', 'tools[1].tools[0]'],
      ['custom', 'n__c', 'tools[1].tools[1]'],
      ['function', 'local_shell', 'tools[2]'],
      ['opaque', 'shell', 'tools[3]'],
      ['web-search', undefined, 'tools[4]'],
      ['code-execution', undefined, 'tools[5]'],
      ['opaque', 'file_search', 'tools[6]'],
      ['function', 'apply_patch', 'input[0].tools[0]'],
      ['function', 'f', 'input[0].tools[1]'],
    ]);
    expect([...toolSpellings(body)]).toEqual([
      ['f', { call: 'function_call', name: 'f' }],
      ['n__f', { call: 'function_call', name: 'f', namespace: 'n' }],
      ['n__c', { call: 'custom_tool_call', name: 'c', namespace: 'n' }],
      ['local_shell', { call: 'local_shell_call', name: 'local_shell' }],
      ['apply_patch', { call: 'apply_patch_call', name: 'apply_patch' }],
    ]);
  });

  it('of a body that is no request are none', () => {
    expect([...toolSpellings({ tools: 'x', input: [{ type: 'additional_tools' }, 7] })]).toEqual([]);
    expect([
      ...toolSpellings({ tools: [{ type: 'namespace', tools: [f] }, { type: 'constructor' }, null] }),
    ]).toEqual([]);
  });

  it('with a grammar have it spelled as everywhere', () => {
    const [tool] = decode({
      input: 'Hi',
      tools: [{ type: 'custom', name: 'c', format: { type: 'grammar', syntax: 'lark', definition: 'x' } }],
    }).tools;
    expect(tool).toMatchObject({ format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } } });
  });

  it.each([
    ['required', { type: 'required' }],
    [
      { type: 'function', name: 'f' },
      { type: 'tool', name: 'f' },
    ],
    [
      { type: 'function', function: { name: 'f' } },
      { type: 'tool', name: 'f' },
    ],
    [
      { type: 'custom', name: 'c', namespace: 'n' },
      { type: 'tool', name: 'n__c' },
    ],
    [{ type: 'apply_patch' }, { type: 'tool', name: 'apply_patch' }],
    [{ type: 'web_search' }, undefined],
    [{ type: 'mcp', server_label: 's' }, undefined],
    [
      {
        type: 'allowed_tools',
        mode: 'auto',
        tools: [{ type: 'function', name: 'f' }, { type: 'image_generation' }],
      },
      { type: 'allowed', mode: 'auto', names: ['f'] },
    ],
  ])('are chosen by %j', (choice, read) => {
    expect(decode({ input: 'Hi', tool_choice: choice }).toolChoice).toEqual(read);
  });
});

describe('settings', () => {
  it('are read from all their places', () => {
    expect(
      decode({
        input: 'Hi',
        max_output_tokens: 5,
        include: ['message.output_text.logprobs'],
        top_logprobs: 2,
        text: { format: { type: 'json_schema', name: 'n', schema: {}, strict: true }, verbosity: 'low' },
        reasoning: { effort: 'HIGH', generate_summary: 'detailed' },
        safety_identifier: 's',
        user: 'u',
      }).settings,
    ).toEqual({
      maxOutput: 5,
      logprobs: true,
      topLogprobs: 2,
      responseFormat: { type: 'json-schema', name: 'n', schema: {}, strict: true },
      verbosity: 'low',
      reasoning: { effort: 'high', show: true, display: 'detailed' },
      user: 's',
    });
  });

  it('change with an update in the input', () => {
    const { settings } = decode({
      reasoning: { effort: 'low', summary: 'auto' },
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'configuration_update', reasoning: { effort: 'high' } },
      ],
    });
    expect(settings.reasoning).toEqual({ effort: 'high', show: true, display: 'auto' });
    expect(
      errorOf(() => decode({ input: [{ type: 'configuration_update', text: { format: { type: 'x' } } }] }))
        .param,
    ).toBe('input[0].text.format.type');
  });
});
