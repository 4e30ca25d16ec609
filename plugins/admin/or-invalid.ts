/** Refuses what cannot be, in the words of whoever keeps it. */
import { GatewayError } from 'sluice';

/** Waits for a change. A mistake of this class, whose message is for people, is answered with 400. */
export async function orInvalid<Result>(
  Mistake: new (message: string) => Error,
  work: Promise<Result>,
): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Mistake) throw new GatewayError('invalid_value', error.message);
    throw error;
  }
}
