import { definePlugin } from 'sluice';
import { Deliveries } from './deliveries.ts';
import { options } from './options.ts';
import { addRoutes } from './routes.ts';
import { AlertWatch } from './watch.ts';

/**
 * Operators are told when budgets are spent, channels fail, something expires or the gateway itself has a problem: by signed webhooks, chat
 * or e-mail. Clients notice nothing, because everything is looked at in the background.
 */
export default definePlugin({
  name: 'alerts',
  stage: 'observe',
  whenListed: true,
  options,
  async setup(chosen, tools) {
    const deliveries = await Deliveries.open(chosen, tools);
    const watch = new AlertWatch(chosen, tools, deliveries);
    addRoutes(tools, watch);
    watch.begin();
    tools.onClose(() => watch.close());
    const needsOutcomes = chosen.errorRate !== false || chosen.budgets.length > 0;

    return function alerts(call, next) {
      if (needsOutcomes) call.onOutcome((outcome) => watch.note(call, outcome));
      return next(call);
    };
  },
});
