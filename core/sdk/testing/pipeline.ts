/** Composes plugins under test into the pipeline of a gateway around a scripted channel, and consumes its responses. */
import { Subscriber, type Observable } from 'rxjs';
import { compose, type Running } from '../../call/pipeline.ts';
import type { InternalTools } from '../../config/internal-tools.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isChat } from '../../model/request.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { accounted } from '../../money/account/followed.ts';
import { doToolWork } from '../../call/tool-run.ts';
import { accountOf } from '../../money/account/index.ts';
import type { AccountServices } from '../../money/account/services.ts';
import { addressed } from '../../routing/target.ts';
import { callKey } from '../call-key.ts';
import type { Affinity } from '../affinity.ts';
import { chatOf, type Call, type Channel } from '../call.ts';
import type { Next } from '../define.ts';
import { GatewayError } from '../errors.ts';
import { played, reply as replyOf, type Script } from './script.ts';

/**
 * The call as the channel received it, after all plugins.
 *
 * @example
 * expect(sent[0]?.model).toBe('gpt-5-mini');
 */
export interface Sent {
  /** The whole call: its edits, its target, and the values that plugins have set. */
  readonly call: Call;
  readonly model: string;
  readonly stream: boolean;
  /** The decoded request: its messages, tools and settings. Throws unless it is a chat. */
  readonly request: ChatRequest;
  /** All texts of its messages, instructions left out, each on a line of its own. Empty unless it is a chat. */
  readonly text: string;
  /** Preferred channel or key of the call. */
  readonly affinity: Affinity | undefined;
}

/** Functions of the test that read the body of a call and answer it. */
export const underTest = callKey<{ read(): void; answer(sent: Sent): Promise<Script> }>('under test');

/** Composes the plugins as a gateway does, around a channel whose responses the test of each call scripts. */
export function composedAround(
  running: readonly Running[],
  catalog: InternalTools['catalog'],
  services: AccountServices,
): { readonly handle: Next; readonly translate: Next; readonly subcalls: Next; readonly toolRuns: Next } {
  const at = (...wanted: readonly string[]): Running[] =>
    running.filter(({ stage }) => wanted.includes(stage));
  const channel: Next = async (call) => {
    const test = call.get(underTest);
    if (test === undefined) throw new Error('This call was not made by the test.');
    const script = await test.answer(sentOf(call));
    const [first] = script;
    if (first !== undefined && 'fail' in first) throw first.fail;
    return played(script);
  };
  const translate = compose(at('translate'), channel, true);
  const attempt: Next = (call) => {
    const [target] = catalog.targets(call.model);
    if (target === undefined)
      return Promise.reject(
        new GatewayError('no_available_channel', `No channel serves the model "${call.model}".`),
      );
    return translate(addressed(call, target));
  };
  const body: Running = {
    name: 'the reading of the body',
    stage: 'identify',
    after: [],
    handler(call, next) {
      call.get(underTest)?.read();
      return next(call);
    },
  };
  const identified = [...at('observe', 'identify'), body, ...at('admit')];
  const all = [...identified, ...at('shape')];
  const send: Next = (call) => accountOf(call).send(call, attempt);
  const chain = {
    calls: compose(all, send, true),
    lists: compose(all, channel, true),
    state: compose(identified, channel, true),
  };
  return {
    handle: accounted(services, (call) =>
      chain[call.operation === 'list-models' ? 'lists' : call.operation === 'state' ? 'state' : 'calls'](
        call,
      ),
    ),
    translate,
    subcalls: accounted(services, compose(at('observe', 'admit'), send, true)),
    toolRuns: accounted(
      services,
      compose(at('observe', 'admit'), (call) => accountOf(call).send(call, doToolWork), true),
    ),
  };
}

function sentOf(call: Call): Sent {
  const chat = call.operation === 'list-models' || call.operation === 'state' ? undefined : call.request;
  const words =
    chat === undefined || !isChat(chat)
      ? []
      : chat.messages.flatMap(({ content }) =>
          content.flatMap((block) => (block.type === 'text' ? [block.text] : [])),
        );
  return {
    call,
    model: call.model,
    stream: call.stream,
    get request() {
      return chatOf(call);
    },
    text: words.join('\n'),
    affinity: call.edits.affinity,
  };
}

/** Returns the default response to a call, for a test that gives a text or nothing. */
export function usualReply(
  { call }: Sent,
  text: string | undefined,
  catalog: InternalTools['catalog'],
): Script {
  if (call.operation === 'list-models') return [{ type: 'models', models: catalog.list() }];
  if (call.operation === 'state') return [{ type: 'result', value: {} }];
  return replyOf(text ?? 'Hello.');
}

/** Returns promises for a client that disconnects when the signal aborts. */
export function leaving(signal: AbortSignal | undefined) {
  const error = new GatewayError('client_closed_request', 'The client left.');
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  if (signal?.aborted === true) reject(error);
  signal?.addEventListener('abort', () => reject(error), { once: true });
  return { beforeAnswer: promise, during: promise.catch(() => {}) };
}

/** Consumes the events of a response until it ends or the client leaves. */
export function consumed(
  stream: Observable<GatewayEvent>,
  exchange: { fail(error: GatewayError): void; writer: { fail(error: GatewayError): void } | undefined },
  take: (event: GatewayEvent) => void,
  leaveAfter: number | undefined,
  left: Promise<void>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let count = 0;
    const leave = (): void => {
      writing.unsubscribe();
      resolve();
    };
    const writing = new Subscriber<GatewayEvent>({
      next(event) {
        take(event);
        count += 1;
        if (count === leaveAfter) leave();
      },
      error: reject,
      complete: resolve,
    });
    exchange.writer = {
      fail(error) {
        writing.unsubscribe();
        reject(error);
      },
    };
    stream.subscribe(writing);
    void left.then(leave);
    if (leaveAfter === 0) leave();
  });
}

/**
 * A channel of a test. The test scripts its response with each call.
 *
 * @example
 * await testPlugins(router(), { channels: { long: { models: ['*'], traits: { inputLimit: 1_000_000 } } } });
 */
export interface ScriptedChannel {
  /** Names and patterns; `*` is allowed at the end only. */
  readonly models: readonly string[];
  /** The formats that it speaks for chats, best first. Default `chat-completions`. */
  readonly speaks?: readonly string[];
  /** Traits of all its models. */
  readonly traits?: ModelTraits;
}

/** Returns the channel for the catalog. */
export function scripted([id, given]: readonly [string, readonly string[] | ScriptedChannel]): Channel {
  const {
    models,
    speaks = ['chat-completions'],
    traits = {},
  }: ScriptedChannel = 'models' in given ? given : { models: given };
  return {
    id,
    kind: 'scripted',
    models,
    priority: 0,
    weight: 1,
    keys: [{ id: '', index: 0 }],
    codecs: {},
    speaks: { chat: speaks },
    upstreamModel: (model) =>
      models.some((one) => one === model || (one.endsWith('*') && model.startsWith(one.slice(0, -1))))
        ? model
        : undefined,
    traits: () => traits,
    open: () => Promise.reject(new Error('A scripted channel is not opened.')),
    close: () => Promise.resolve(),
  };
}
