import { openaiLike } from 'sluice/channels/openai-compatible';

/** A server of your own that speaks chat completions, as most do. The config gives its address. */
export default openaiLike({
  name: 'local',
  baseUrl: 'http://localhost:8000/v1',
  needsKey: false,
  models: ['local/*'],
});
