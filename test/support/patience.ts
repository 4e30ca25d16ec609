/**
 * How long a test waits for what must become true, in milliseconds, and how long it may take as a whole. Both say only when a wait is
 * hopeless: what is slow on a busy machine is not wrong, and no test says how fast something must be.
 */
export const patience: { readonly wait: number; readonly test: number } = { wait: 120_000, test: 300_000 };
