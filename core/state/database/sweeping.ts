/** How often something is swept, in milliseconds: after a batch that was full, the next one follows soon. */
export interface SweepingTimes {
  readonly pause: number;
  readonly pauseWhenFull: number;
}

/**
 * Lets `sweep` remove a batch of what has expired, again and again, until the returned function is called; it says whether the batch was
 * full. A failure goes to `failed`, and does not end the sweeping. Keeps no process alive.
 */
export function startSweeping(
  sweep: () => Promise<boolean>,
  { pause, pauseWhenFull }: SweepingTimes,
  failed: (error: unknown) => void,
): () => void {
  let stopped = false;
  let timer: NodeJS.Timeout;
  const again = (wait: number): void => {
    if (!stopped) timer = setTimeout(() => void run(), wait).unref();
  };
  const run = async (): Promise<void> => {
    let full = false;
    try {
      full = await sweep();
    } catch (error) {
      if (!stopped) failed(error);
    }
    again(full ? pauseWhenFull : pause);
  };
  again(pauseWhenFull);
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
