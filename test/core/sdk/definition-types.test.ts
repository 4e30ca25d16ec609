/* oxlint-disable vitest/expect-expect -- what is expected is said to the compiler. */
import { from } from 'rxjs';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  definePlugin,
  defineChannel,
  defineSecrets,
  type Call,
  type ChannelParts,
  type ChannelTools,
  type Endpoint,
  type GatewayEvent,
  type Handler,
  type Next,
  type PluginTools,
} from 'sluice';
import * as internal from 'sluice/internal';

/*
 * The compiler checks this file (`npm run types`): a line below `@ts-expect-error` that compiles is an error. What stands here is not run.
 */

type WholeCall = internal.Call;
type WholeTools = internal.InternalTools;

const goOn: Handler = (call, next) => next(call);

describe('a plugin made with the public API', () => {
  test('gets the public call, tools and its own options, without a type written', () => {
    definePlugin({
      name: 'typed',
      stage: 'shape',
      options: z.object({ words: z.array(z.string()).default([]) }),
      setup({ words }, tools) {
        expectTypeOf(words).toEqualTypeOf<string[]>();
        expectTypeOf(tools).toEqualTypeOf<PluginTools>();
        return async function typed(call, next) {
          expectTypeOf(call).toEqualTypeOf<Call>();
          expectTypeOf(next).toEqualTypeOf<Next>();
          return next(call.with({ model: 'other' }));
        };
      },
    });
  });

  test('may name the types, ask for less, and be set up later', () => {
    definePlugin({ name: 'named', stage: 'shape', setup: () => (call: Call, next: Next) => next(call) });
    definePlugin({ name: 'later', stage: 'shape', setup: async () => (call, next) => next(call) });
    definePlugin({
      name: 'less',
      stage: 'shape',
      setup(_options, { onClose }: Pick<PluginTools, 'onClose'>) {
        onClose(() => {});
        return goOn;
      },
    });
  });

  test('does not compile where its handler asks for more than the public call', () => {
    // @ts-expect-error -- `Call` of sluice/internal has members that the public call lacks
    const handler: Handler = (call: WholeCall, next) => next(call);
    definePlugin({
      name: 'asks-for-more',
      stage: 'shape',
      // @ts-expect-error -- the same in a setup
      setup: () => (call: WholeCall, next) => next(call),
    });
    expectTypeOf(handler).toEqualTypeOf<Handler>();
  });

  test('does not compile where its handler only sends on calls of the core', () => {
    // @ts-expect-error -- `next` takes any view that a plugin has, so that a handler cannot ask for one that takes fewer
    const handler: Handler = (call, next: Next & { readonly more: true }) => next(call);
    expectTypeOf(handler).toEqualTypeOf<Handler>();
  });

  test('does not compile where its setup asks for more than the public tools', () => {
    definePlugin({
      name: 'asks-for-tools',
      stage: 'shape',
      // @ts-expect-error -- InternalTools has members that PluginTools lacks
      setup: (_options, tools: WholeTools) => {
        tools.reads();
        return goOn;
      },
    });
  });

  test('does not compile where an endpoint asks for more than the public call', () => {
    const endpoint: Omit<Endpoint, 'handle'> = {
      method: 'GET',
      path: '/v1/greetings',
      format: 'chat-completions',
    };
    // @ts-expect-error -- the handler of an endpoint gets the public call
    const whole: Endpoint = { ...endpoint, handle: (call: WholeCall) => Promise.reject(call.failure) };
    expectTypeOf(whole).toEqualTypeOf<Endpoint>();
  });
});

describe('a channel made with the public API', () => {
  test('gets the public call and tools without a type written', () => {
    defineChannel({
      name: 'typed',
      setup(_options, tools) {
        expectTypeOf(tools).toEqualTypeOf<ChannelTools>();
        return {
          speaks: { chat: ['chat-completions'] },
          open(call, { path, body }) {
            expectTypeOf(call).toEqualTypeOf<Call>();
            return tools.http.send(call, { url: path, headers: {}, body });
          },
        };
      },
    });
  });

  test('does not compile where it asks for more', () => {
    const parts: Omit<ChannelParts, 'open'> = { speaks: {} };
    // @ts-expect-error -- `open` gets the public call
    const whole: ChannelParts = { ...parts, open: (call: WholeCall) => Promise.reject(call.failure) };
    defineChannel({
      name: 'answers',
      setup: () => ({
        // @ts-expect-error -- `answer` gets the public call
        answer: (call: WholeCall) => from(call.losses.map((loss): GatewayEvent => ({ type: 'loss', loss }))),
      }),
    });
    defineChannel({
      name: 'asks-for-tools',
      // @ts-expect-error -- `format` is a tool of channels of this repository
      setup: (_options: unknown, { format }: ChannelTools & { format: () => void }) => format && whole,
    });
  });
});

describe('a source of secrets', () => {
  test('does not compile where it asks for more than the tools of secrets', () => {
    defineSecrets({
      name: 'secrets',
      source: 'mine',
      // @ts-expect-error -- a source of secrets has no stores
      open: (_options, { stores }: PluginTools) => ({
        read: ({ name }) => stores.namespace<string>('x').get(name),
      }),
    });
  });
});

describe('a plugin of this repository that is made with `sluice/internal`', () => {
  test('gets the call and the tools of the core', () => {
    internal.definePlugin({
      name: 'whole',
      stage: 'observe',
      options: z.object({ limit: z.int().default(1) }),
      setup({ limit }, tools) {
        expectTypeOf(limit).toEqualTypeOf<number>();
        expectTypeOf(tools).toEqualTypeOf<WholeTools>();
        return (call, next) => {
          expectTypeOf(call).toEqualTypeOf<WholeCall>();
          return next(call);
        };
      },
    });
  });
});
