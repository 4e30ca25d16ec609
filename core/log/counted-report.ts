/** Minimum interval between two reports of one kind of event, in milliseconds. */
const interval = 10_000;

/**
 * Returns a function to call for each event of a kind that may be very frequent. It calls `report` at most once in ten seconds, with the number of
 * events since the last report and what is known of the latest one.
 */
export function countedReport<Event = void>(
  report: (count: number, event: Event) => void,
): (event: Event) => void {
  let count = 0;
  let reportedAt = -interval;
  return (event) => {
    count += 1;
    if (performance.now() - reportedAt < interval) return;
    reportedAt = performance.now();
    report(count, event);
    count = 0;
  };
}
