import { Observable, type Subscriber } from 'rxjs';
import type { Call, GatewayEvent } from 'sluice';
import type { Entry } from './entry.ts';
import { LogReader, type Shown } from './log-reader.ts';
import { piecesOf } from './pieces.ts';
import { shownTo } from './shown.ts';

/** Returns a kept response as one of this call. `pace`: events a second of a stream. */
export function replayed(entry: Entry, call: Call, pace: number | 'at once'): Observable<GatewayEvent> {
  const shown = shownTo(call, entry);
  if (pace === 'at once' || !call.stream) {
    const log = { eventAt: (index: number) => entry.events[index], end: {} };
    return new LogReader(log, call.gate, { shown }).stream;
  }
  return new Observable((subscriber) =>
    pump(subscriber, shownPieces(entry.events, shown), call.gate, 1_000 / pace),
  );
}

/** Cuts texts only when a client takes them, so that a long response takes no more memory than a piece. */
function* shownPieces(events: readonly GatewayEvent[], shown: Shown): Generator<GatewayEvent, void> {
  for (const event of events) {
    const own = shown(event);
    if (own !== undefined) yield* piecesOf(own);
  }
}

/** Sends each event once the client takes it, and each delta after a pause. Returns a function that ends it. */
function pump(
  subscriber: Subscriber<GatewayEvent>,
  pieces: Iterator<GatewayEvent, void>,
  gate: Call['gate'],
  pauseMs: number,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isDue = false;
  let piece = pieces.next();
  const advance = (): void => {
    while (!subscriber.closed) {
      const opened = gate.opened();
      if (opened !== undefined) {
        void opened.then(advance);
        return;
      }
      const { done, value } = piece;
      if (done === true) {
        subscriber.complete();
        return;
      }
      if (!isDue && value.type.endsWith('-delta')) {
        timer = setTimeout(() => {
          isDue = true;
          advance();
        }, pauseMs);
        return;
      }
      isDue = false;
      piece = pieces.next();
      subscriber.next(value);
    }
  };
  advance();
  return () => clearTimeout(timer);
}
