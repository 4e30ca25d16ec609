import { callKey } from './call-key.ts';

/** Price of a tool's run in micro-dollars, for calls whose operation is `tool`. */
export const toolPrice = callKey<number>('tool price');
