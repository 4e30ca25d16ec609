import type { Stage } from './stage.ts';
/** x */
export async function sizing(_stage: Stage, _options: { seconds: number; rounds: number }): Promise<string> {
  return '';
}
