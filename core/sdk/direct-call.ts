/** Types of calls of the gateway or a plugin: to one target, on behalf of another call, for a tool or for a task. */
import type { Observable } from 'rxjs';
import type { Call, Target } from './call.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonObject } from '../model/json.ts';
import type { VideoTaskRequest } from '../model/video.ts';
import type { SubcallRequest, ToolRun } from './author/tools.ts';

/** Call without a client. The code that requested it must end it. */
export interface DirectCall {
  readonly call: Call;
  /** Sends the call; the response comes as decoded events. Rejects as an attempt does. May be called once. */
  send(): Promise<Observable<GatewayEvent>>;
  /** Ends the call, up to the provider's socket. */
  end(): void;
}

/**
 * Makes a chat call to one target, also of a channel that is switched off. It runs the translate stage only: no key, no limit, no record.
 * Throws GatewayError when the body is not a request of the format.
 */
export type DirectCalls = (format: string, body: JsonObject, target: Target) => DirectCall;

/** See {@link PluginTools.runTool}. */
export type ToolRuns = <T>(parent: Call, tool: ToolRun, run: (call: Call) => Promise<T>) => Promise<T>;

/** See {@link PluginTools.subcall}. */
export type Subcalls = (parent: Call, request: SubcallRequest) => DirectCall;

/**
 * Makes a call about a task at its provider, in the format in which the task was created there, also on a channel that is switched off. It
 * runs the translate stage only; the response is one `result` with a VideoReport. Throws when the channel has no such call.
 */
export type TaskCalls = (request: VideoTaskRequest, target: Target) => DirectCall;

/**
 * Makes a call to one target that its creator sends to the channel by itself, any number of times, until it calls `end`. Throws for an unknown
 * format.
 */
export type ProviderCalls = (
  format: string,
  target: Target,
) => { readonly call: Call; readonly end: () => void };
