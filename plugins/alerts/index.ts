import { definePlugin } from 'sluice';
import { options } from './options.ts';

/**
 * Alerts operators when budgets are spent, channels fail, keys or certificates expire, or the gateway has a problem: by signed webhooks,
 * chat or e-mail. Clients notice nothing, because all conditions are checked in the background.
 */
export default definePlugin({
  name: 'alerts',
  stage: 'observe',
  whenListed: true,
  options,
  async setup(chosen, tools) {
    // Loaded where it is wanted.
    const [{ Deliveries }, { addRoutes }, { AlertWatch }] = await Promise.all([
      import('./deliveries.ts'),
      import('./routes.ts'),
      import('./watch.ts'),
    ]);
    const deliveries = await Deliveries.open(chosen, tools);
    const watch = new AlertWatch(chosen, tools, deliveries);
    addRoutes(tools, watch, chosen);
    watch.begin();
    tools.onClose(() => watch.close());
    const needsOutcomes = chosen.errorRate !== false || chosen.budgets.length > 0;

    return function alerts(call, next) {
      if (needsOutcomes) call.onOutcome((outcome) => watch.note(call, outcome));
      return next(call);
    };
  },
});
