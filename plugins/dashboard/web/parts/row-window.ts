/** Rows of a long table that are in view while the window scrolls. */
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** Tables with at most so many rows are in the document as a whole. */
const whole = 150;
/** Estimated height of a row in pixels, until it is measured. */
const rowHeight = 52;

/** Rows to put into the document, and the heights of what is left out before and after them. */
export interface RowWindow {
  readonly body: RefObject<HTMLTableSectionElement | null>;
  readonly shown: readonly number[];
  readonly before: number;
  readonly after: number;
  readonly measure: (row: Element | null) => void;
}

/** Returns the rows in view. `onEnd` is called when the last of them come near. */
export function useRowWindow(count: number, onEnd: (() => void) | undefined): RowWindow {
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  const isWhole = count <= whole;
  useLayoutEffect(() => {
    setTop((body.current?.getBoundingClientRect().top ?? 0) + scrollY);
  }, [count]);
  const virtualizer = useWindowVirtualizer({
    count,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollMargin: top,
    enabled: !isWhole,
  });
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1);
  const isNearEnd = !isWhole && last !== undefined && last.index >= count - 20;
  useEffect(() => {
    if (isNearEnd) onEnd?.();
    // Not `onEnd`: a new function for the same rows asks for nothing new.
  }, [isNearEnd, count]);
  if (isWhole)
    return {
      body,
      shown: Array.from({ length: count }, (_, index) => index),
      before: 0,
      after: 0,
      measure: () => {},
    };
  return {
    body,
    shown: items.map(({ index }) => index),
    before: (items[0]?.start ?? top) - top,
    after: virtualizer.getTotalSize() - ((last?.end ?? top) - top),
    measure: virtualizer.measureElement,
  };
}
