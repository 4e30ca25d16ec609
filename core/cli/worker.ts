/** Entry point of a worker process. */
import { resolveHere } from '../config/installation/resolve.ts';

/*
 * `resolveHere` must run before the import, because it registers the hook that resolves the modules of this installation.
 */

resolveHere();
await import('./serve.ts');
