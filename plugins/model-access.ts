import { map } from 'rxjs';
import { caller, definePlugin, GatewayError, matchesModel, type GatewayEvent } from '#sluice';

/**
 * A caller whose key names models gets 403 for every other model, and sees no other in the model lists. The name asked for and the name
 * that model-alias made of it both count, so that a key for `x` may ask for `x-high`.
 */
export default definePlugin({
  name: 'model-access',
  stage: 'admit',
  after: ['model-alias'],
  before: ['stored-responses', 'quota', 'realtime-sessions'],
  setup() {
    return function modelAccess(call, next) {
      const allowed = call.get(caller)?.models;
      // What a plugin's endpoint answers concerns no model.
      if (allowed === undefined || call.operation === 'state') return next(call);
      if (call.operation === 'list-models')
        return next(call).then((events) => events.pipe(map(only(allowed))));
      if (!matchesModel(allowed, call.model) && !matchesModel(allowed, call.askedModel)) {
        throw new GatewayError(
          'model_not_allowed',
          `This API key has no access to the model ${call.askedModel}.`,
          {
            param: 'model',
          },
        );
      }
      return next(call);
    };
  },
});

/** Leaves the allowed models in a model list. */
function only(allowed: readonly string[]): (event: GatewayEvent) => GatewayEvent {
  return (event) =>
    event.type === 'models'
      ? { ...event, models: event.models.filter(({ id }) => matchesModel(allowed, id)) }
      : event;
}
