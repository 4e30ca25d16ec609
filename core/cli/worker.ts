/** The program of the processes that serve. */
import { resolveHere } from '../config/installation/resolve.ts';

/*
 * The program of a worker process. What it loads is found by the short way, which has to be open before.
 */

resolveHere();
await import('./serve.ts');
