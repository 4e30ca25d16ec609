/** Divides long work into time slices, between which other calls run. */
import { yieldToEventLoop } from 'sluice/internal';

/** Milliseconds after which long work lets other callers run. */
const sliceMs = 5;

let began = 0;
let last: Promise<void> = Promise.resolve();

/** Returns true when the current slice of long work has taken its time: await {@link nextSlice} before more. */
export function isSliceOver(): boolean {
  return performance.now() - began >= sliceMs;
}

/**
 * Resolves when the next slice begins. All uploads share one slice for each turn of the event loop, because otherwise other callers would wait
 * for as many slices as there are uploads.
 */
export function nextSlice(): Promise<void> {
  last = last
    .then(() => yieldToEventLoop())
    .then(() => {
      began = performance.now();
    });
  return last;
}
