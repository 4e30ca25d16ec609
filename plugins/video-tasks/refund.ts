import type { Settlement, Task } from './core-types.ts';

/** Returns the refund for a task without a result; nothing for a free one. */
export function refundOf(task: Task, now: number): readonly Settlement[] {
  const { charged, state, endUsers } = task;
  if (state !== 'failed' && state !== 'cancelled') return [];
  if (charged.microDollars === 0 && charged.tokens === 0) return [];
  return [
    {
      ...(task.owner === '' ? {} : { keyId: task.owner }),
      charged,
      ...(endUsers === undefined ? {} : { series: endUsers }),
      isPriced: true,
      refundOf: task.chargedAt,
      record: {
        id: `refund_${task.id}`,
        at: now,
        ...(task.owner === '' ? {} : { keyId: task.owner }),
        ip: '',
        operation: 'refund',
        format: task.format,
        upstreamFormat: task.upstreamFormat,
        model: task.model,
        upstreamModel: task.upstreamModel,
        channel: task.channel,
        stream: false,
        status: 200,
        ended: 'complete',
        reason: `Gives back what ${task.chargeId} was charged: ${task.error?.code ?? state}.`,
        input: charged.tokens === 0 ? 0 : -charged.tokens,
        output: 0,
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
        microDollars: charged.microDollars === 0 ? 0 : -charged.microDollars,
        ms: 0,
      },
    },
  ];
}
