import { gathered, GatewayError, maskSecrets, toGatewayError, type GatewayEvent } from 'sluice';
import type { Channel, DirectCalls } from './core-types.ts';
import type { ChannelTestResult } from './schemas/index.ts';

/** The longest that a test may take, in milliseconds. */
const patience = 30_000;
/** Maximum number of characters of the response that are shown. */
const mostText = 200;

/** Sends a tiny chat through a channel. A failure of the provider is a result; a wish that makes no sense is thrown. */
export async function testChannel(
  calls: DirectCalls,
  channel: Channel,
  wanted: string | undefined,
): Promise<ChannelTestResult> {
  if (channel.speaks.chat === undefined)
    throw new GatewayError(
      'invalid_request',
      `The channel ${channel.id} does not support chat, so it cannot be tested.`,
    );
  const model = wanted ?? channel.models.find((name) => !name.includes('*'));
  if (model === undefined)
    throw new GatewayError('missing_required_parameter', 'This channel serves patterns only: name a model.', {
      param: 'model',
    });
  const upstreamModel = channel.upstreamModel(model);
  if (upstreamModel === undefined)
    throw new GatewayError('invalid_value', `The channel ${channel.id} does not serve this model.`, {
      param: 'model',
    });

  const [key] = channel.keys;
  if (key === undefined) throw new Error('A channel has at least one key.');
  const target = { channel, key, model: upstreamModel, traits: channel.traits(upstreamModel) };
  const body = {
    model,
    messages: [{ role: 'user', content: 'Reply with the word ok.' }],
    max_completion_tokens: 32,
  };
  const startedAt = performance.now();
  const direct = calls('chat-completions', body, target);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    direct.end();
  }, patience);
  const elapsed = (): number => Math.round(performance.now() - startedAt);
  try {
    const events = await gathered(direct.call, await direct.send());
    return { ok: true, model, ms: elapsed(), ...findings(events) };
  } catch (error) {
    return { ok: false, model, ms: elapsed(), error: late ? tooLate : failureOf(error) };
  } finally {
    clearTimeout(timer);
    direct.end();
  }
}

const tooLate = {
  code: 'upstream_timeout',
  status: 504,
  message: `The channel did not respond within ${patience / 1000} seconds.`,
};

function findings(
  events: readonly GatewayEvent[],
): Pick<ChannelTestResult, 'format' | 'text' | 'input' | 'output'> {
  let text = '';
  let format: string | undefined;
  let usage: { readonly input: number; readonly output: number } | undefined;
  for (const event of events) {
    if (event.type === 'text-delta') text += event.text;
    else if (event.type === 'usage') usage = event.usage;
    else if (event.type === 'attempt') ({ format } = event);
  }
  return { format, text: text.slice(0, mostText), input: usage?.input, output: usage?.output };
}

/** Returns the error with its cause, because operators may see it. */
function failureOf(thrown: unknown): NonNullable<ChannelTestResult['error']> {
  const { code, status, message, cause } = toGatewayError(thrown);
  const behind = cause instanceof Error ? ` (${cause.message})` : '';
  return { code, status, message: maskSecrets(`${message}${behind}`).slice(0, 1000) };
}
