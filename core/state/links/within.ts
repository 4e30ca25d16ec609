/** Time between two looks whether an answer has come, in milliseconds. */
const look = 50;

/** Rejects when the promise takes longer; what becomes of it then concerns nobody. */
export function within<T>(time: number, promise: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    // Looks, not time: a gateway that stood still itself, and has not read what came meanwhile, must not take the store for gone.
    let looks = 0;
    const timer = setInterval(() => {
      looks += 1;
      if (looks * look < time) return;
      clearInterval(timer);
      reject(new Error(`The shared store did not answer within ${time} ms.`));
    }, look);
    promise.then(
      (value) => {
        clearInterval(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearInterval(timer);
        reject(error instanceof Error ? error : new Error('The shared store failed.', { cause: error }));
      },
    );
  });
}
