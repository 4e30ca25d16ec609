/** On-demand prices of OCI, which no catalogue has. */
import type { ChannelSpec } from 'sluice';

const priced = (input: number, output: number): { readonly input: number; readonly output: number } => ({
  input,
  output,
});

/**
 * Dollars for a million tokens on demand. Oracle bills Llama and Cohere by characters, of which four count as a token.
 * https://www.oracle.com/artificial-intelligence/generative-ai/ and https://www.oracle.com/artificial-intelligence/enterprise-ai/, as LiteLLM 1.110.2
 * has them (model_prices_and_context_window_backup.json, `oci/…`, 2026-11-20)
 */
export const ociPrices: NonNullable<ChannelSpec<never>['prices']> = {
  'meta.llama-3.1-70b-instruct': priced(0.72, 0.72),
  'meta.llama-3.1-405b-instruct': priced(10.68, 10.68),
  'meta.llama-3.2-11b-vision-instruct': priced(2, 2),
  'meta.llama-3.2-90b-vision-instruct': priced(2, 2),
  'meta.llama-3.3-70b-instruct': priced(0.72, 0.72),
  'meta.llama-3.3-70b-instruct-fp8-dynamic': priced(0.72, 0.72),
  'meta.llama-4-maverick-17b-128e-instruct-fp8': priced(0.72, 0.72),
  'meta.llama-4-scout-17b-16e-instruct': priced(0.72, 0.72),
  'xai.grok-3': priced(3, 15),
  'xai.grok-3-fast': priced(5, 25),
  'xai.grok-3-mini': priced(0.3, 0.5),
  'xai.grok-3-mini-fast': priced(0.6, 4),
  'xai.grok-4': priced(3, 15),
  'xai.grok-4-fast': priced(5, 25),
  'xai.grok-4.1-fast': priced(5, 25),
  'xai.grok-4.20': priced(3, 15),
  'xai.grok-4.20-multi-agent': priced(3, 15),
  'xai.grok-code-fast-1': priced(5, 25),
  'cohere.command-latest': priced(1.56, 1.56),
  'cohere.command-plus-latest': priced(1.56, 1.56),
  'cohere.command-a-03-2025': priced(1.56, 1.56),
  'cohere.command-a-reasoning-08-2025': priced(1.56, 1.56),
  'cohere.command-a-vision-07-2025': priced(1.56, 1.56),
  'cohere.command-r-08-2024': priced(0.15, 0.15),
  'cohere.command-r-plus-08-2024': priced(1.56, 1.56),
  'openai.gpt-5': priced(1.25, 10),
  'openai.gpt-5-mini': priced(0.25, 2),
  'openai.gpt-5-nano': priced(0.05, 0.4),
  'openai.gpt-oss-120b': priced(0.15, 0.6),
  'openai.gpt-oss-20b': priced(0.07, 0.3),
};
