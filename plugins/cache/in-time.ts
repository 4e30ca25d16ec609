/** Timeout of a database lookup in milliseconds. A call that waits longer sends its request to the provider. */
const patience = 500;

/** Rejects where a promise takes too long. */
export async function inTime<Value>(promise: Promise<Value>): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`No response within ${patience} milliseconds.`)),
    patience,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
