import type { Observable } from 'rxjs';
import type { Call, Target } from './call.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';
import type { VideoTaskRequest } from '../model/video.ts';
import type { SubcallRequest, ToolRun } from './author/tools.ts';

/** A call that nobody outside has made. Whoever asked for it ends it. */
export interface DirectCall {
  readonly call: Call;
  /** Sends it; the reply comes as decoded events. Rejects as an attempt does. Once. */
  send(): Promise<Observable<GatewayEvent>>;
  /** Lets go of everything, up to the provider's socket. */
  end(): void;
}

/**
 * Makes a chat call to one target, also of a channel that is switched off. It meets the translate stage alone: no key, no limit, no
 * record. Throws GatewayError when the body is not a request of the format.
 */
export type DirectCalls = (format: string, body: JsonObject, target: Target) => DirectCall;

/** See {@link PluginTools.runTool}. */
export type ToolRuns = <T>(parent: Call, tool: ToolRun, run: (call: Call) => Promise<T>) => Promise<T>;

/** See {@link PluginTools.subcall}. */
export type Subcalls = (parent: Call, request: SubcallRequest) => DirectCall;

/**
 * Asks a provider about a task of its own, in the format that the task was made in there, also on a channel that is switched off. It
 * meets the translate stage alone; the reply is one `result` with a VideoReport. Throws when the channel has no such call.
 */
export type TaskCalls = (request: VideoTaskRequest, target: Target) => DirectCall;

/**
 * A call of the gateway's own for one target, which whoever asked for it sends to the channel by itself, as often as it likes; `end` lets
 * go of all of it. Throws where there is no format of that name.
 */
export type ProviderCalls = (
  format: string,
  target: Target,
) => { readonly call: Call; readonly end: () => void };
