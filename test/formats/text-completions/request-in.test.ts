import { describe, expect, it } from 'vitest';
import { codec, failureOf } from './support.ts';

const decode = (more: object) => codec.decodeRequest({ model: 'm', prompt: 'Hi', ...more }, {});

describe('a request', () => {
  it('is one user turn with the prompt', () => {
    expect(decode({}).messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hi', at: 'prompt' }], plain: true, at: 'prompt' },
    ]);
  });

  it('has its settings in neutral words, and none that it did not give', () => {
    expect(decode({}).settings).toEqual({});
    expect(decode({ max_tokens: 5, n: 2, stop: 'x', top_p: 0.5, temperature: 1 }).settings).toEqual({
      maxOutput: 5,
      choices: 2,
      stop: ['x'],
      topP: 0.5,
      temperature: 1,
    });
  });

  it('keeps what only this format knows, and what is no loss apart from it', () => {
    expect(
      decode({ logit_bias: { 5: 1 }, echo: true, best_of: 1, suffix: '', min_p: 0.1, logprobs: null }).extra,
    ).toEqual({
      'text-completions': {
        logit_bias: { 5: 1 },
        min_p: 0.1,
        $kept: { echo: true, best_of: 1, suffix: '' },
      },
    });
  });

  it('says where each of several prompts stood', () => {
    expect(decode({ prompt: ['a', 'b'] }).messages[0]?.content.map(({ at }) => at)).toEqual([
      'prompt[0]',
      'prompt[1]',
    ]);
  });
});

describe('400, naming the field, for', () => {
  it.each([
    ['a missing model', { model: undefined }, 'model', 'missing_required_parameter'],
    ['an empty model', { model: '' }, 'model', 'missing_required_parameter'],
    ['a missing prompt', { prompt: undefined }, 'prompt', 'missing_required_parameter'],
    ['a prompt that is no text', { prompt: { text: 'x' } }, 'prompt', 'invalid_type'],
    ['an empty list of prompts', { prompt: [] }, 'prompt', 'invalid_value'],
    ['an empty list of tokens', { prompt: [[]] }, 'prompt[0]', 'invalid_value'],
    ['a prompt that is no text in a list', { prompt: ['a', null] }, 'prompt[1]', 'invalid_type'],
    ['tokens beside text', { prompt: [1, 'a'] }, 'prompt[1]', 'invalid_type'],
    ['tokens that are no integers', { prompt: [[1, 2.5]] }, 'prompt[0][1]', 'invalid_type'],
    ['a temperature of 3', { temperature: 3 }, 'temperature', 'invalid_value'],
    ['five stop sequences', { stop: ['1', '2', '3', '4', '5'] }, 'stop', 'invalid_value'],
    ['n of 0', { n: 0 }, 'n', 'invalid_value'],
    ['logprobs of 6', { logprobs: 6 }, 'logprobs', 'invalid_value'],
    ['logprobs as in chat', { logprobs: true }, 'logprobs', 'invalid_type'],
    ['an echo that is no boolean', { echo: 'yes' }, 'echo', 'invalid_type'],
    ['a suffix that is no text', { suffix: 5 }, 'suffix', 'invalid_type'],
    ['best_of below n', { best_of: 2, n: 3 }, 'best_of', 'invalid_value'],
    ['best_of in a stream', { best_of: 2, stream: true }, 'best_of', 'invalid_value'],
    ['stream options that are none', { stream_options: true }, 'stream_options', 'invalid_type'],
  ])('%s', (_what, more, param, code) => {
    expect(failureOf(() => codec.validate({ model: 'm', prompt: 'Hi', ...more }, {}))).toMatchObject({
      status: 400,
      code,
      param,
    });
  });
});

describe('what only a channel of this format can answer', () => {
  const refusal = (more: object) => codec.onlyNative?.({ model: 'm', prompt: 'Hi', ...more });

  it.each([
    ['tokens', { prompt: [1, 2] }, 'prompt'],
    ['lists of tokens', { prompt: [[1], [2]] }, 'prompt'],
    ['several prompts', { prompt: ['a', 'b'] }, 'prompt'],
    ['a suffix', { suffix: 'x' }, 'suffix'],
    ['best_of above 1', { best_of: 2 }, 'best_of'],
    ['log probabilities, also of no alternatives', { logprobs: 0 }, 'logprobs'],
  ])('%s are 400, naming the field', (_what, more, param) => {
    expect(refusal(more)).toMatchObject({ status: 400, code: 'unsupported_parameter', param });
  });

  it.each([
    ['a prompt', {}],
    ['a list of one', { prompt: ['a'] }],
    ['an echo', { echo: true }],
    ['best_of 1 and an empty suffix', { best_of: 1, suffix: '' }],
    ['fields that are null', { suffix: null, logprobs: null, best_of: null }],
  ])('%s is not refused', (_what, more) => {
    expect(refusal(more)).toBeUndefined();
  });
});
