import { definePlugin } from 'sluice';

/** The operator finds a line with the final state of every call in the log. */
export default definePlugin({
  name: 'cost-log',
  stage: 'shape',
  setup(_options, { log }) {
    return function costLog(call, next) {
      call.onOutcome((outcome) => log.info(outcome, 'cost of a call'));
      return next(call);
    };
  },
});
