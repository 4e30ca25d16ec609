import type { FrameFold, StreamEncoder, WholeEncoder } from '../../sdk/format.ts';

/** Gathers events into a whole reply: the frames that a stream would have had, folded. */
export function folded(encoder: StreamEncoder, fold: FrameFold): WholeEncoder {
  return {
    event(event) {
      for (const frame of encoder.event(event)) fold.frame(frame);
    },
    end() {
      for (const frame of encoder.end()) fold.frame(frame);
      return fold.end();
    },
  };
}
