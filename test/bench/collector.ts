/** Loaded into the processes of a gateway before anything else: SIGUSR2 collects all garbage, so that what is held can be measured. */
process.on('SIGUSR2', () => {
  globalThis.gc?.();
  globalThis.gc?.();
});
