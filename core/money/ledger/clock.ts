/** Time as the bookkeeper reads and waits for it. Tests give it another one. */
export interface Clock {
  /** Milliseconds since an arbitrary moment. It never goes backwards. */
  now(): number;
  /** Milliseconds since 1970. It may be set. */
  wall(): number;
  /** Runs the job once, after so many milliseconds, unless the returned function is called before. It keeps no process alive. */
  after(milliseconds: number, job: () => void): () => void;
}

/** The clock of the system. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(milliseconds, job) {
    const timer = setTimeout(job, milliseconds).unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after so many milliseconds. */
export function passed(clock: Clock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.after(milliseconds, resolve));
}
