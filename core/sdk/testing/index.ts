/**
 * What authors test with, imported as `sluice/testing`. It needs no test runner: what it finds it throws or returns, so that it works in
 * `node:test` and in vitest alike.
 */

export type { CallOptions } from './call.ts';
export { virtualClock, type VirtualClock } from './clock.ts';
export { startGateway, type TestGateway } from './gateway.ts';
export type { ScriptedChannel, Sent } from './pipeline.ts';
export { testPlugins, type TestedPlugins, type TestOptions } from './plugins.ts';
export type { Outcome, RunOptions } from './run-call.ts';
export {
  cut,
  ended,
  fail,
  pause,
  reply,
  text,
  thought,
  toolCall,
  type Ending,
  type Part,
  type Script,
  type Step,
} from './script.ts';
export { channelCases, type ChannelCase, type ChannelUnderTest, type Lack } from './channel-cases/index.ts';
export { startUpstream, type ScriptedUpstream, type SeenRequest } from './provider.ts';
export { formatVoice, type ReceivedRequest, type Voice } from './voice.ts';
