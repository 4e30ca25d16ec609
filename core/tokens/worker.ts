/** Worker thread that counts tokens with the encoding o200k_base. */
import { parentPort } from 'node:worker_threads';
import { countTokens, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base';
import type { Counted, Order } from './counter.ts';
import { stretches } from './stretches.ts';

/** Words that look like one of the tokenizer's own marks (`<|endoftext|>`) are words. */
const plain = { disallowedSpecial: new Set<string>() };

// The tokenizer's memory of words, once it is full, costs more than the work that it saves.
setMergeCacheSize(0);

parentPort?.on('message', ({ id, text }: Order) => {
  let tokens = 0;
  for (const stretch of stretches(text)) tokens += countTokens(stretch, plain);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is a matter of windows
  parentPort?.postMessage({ id, tokens } satisfies Counted);
});
