import { isObject, type JsonObject } from '../../model/json.ts';
import type { FrameFold, WireFrame } from '../../sdk/format.ts';

/** Puts the frames of one reply together: the last snapshot of the response holds everything. */
export class ResponsesFold implements FrameFold {
  #response: JsonObject = {};

  frame(frame: WireFrame): void {
    if ('json' in frame && isObject(frame.json.response)) this.#response = frame.json.response;
  }

  end(): JsonObject {
    return this.#response;
  }
}
