/** Members of requests that are never left out. */
import { plainMember } from 'sluice';

function names(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/).map(plainMember));
}

/**
 * Members that stay in a request whatever the provider says of them, at whatever depth: without them the model would be asked something else,
 * answer in another form, or cost more than was reserved.
 */
const kept = names(`
  model models messages contents content input prompt suffix system system_instruction instructions conversation previous_response_id
  context cached_content prediction documents files attachments
  tools tool_choice tool_config tool_configuration functions function_call web_search_options search_parameters mcp_servers plugins
  container betas
  response_format format text_format schema json_schema response_schema response_json_schema response_mime_type grammar
  guided_json guided_regex guided_choice guided_grammar structured_outputs output_format output_schema
  stream background modalities response_modalities audio speech_config image_config
  max_tokens max_completion_tokens max_output_tokens max_tokens_to_sample max_new_tokens max_gen_len max_tool_calls num_predict
  budget_tokens thinking_budget
  n candidate_count num_generations best_of
  store service_tier speed provider route routing inference_geo performance_config anthropic_version
`);

/** Objects that hold such members. What else is in them may go, the whole of them not. */
const containers = names(`
  text output_config generation_config inference_config additional_model_request_fields extra_body parameters options config
`);

/** Members that keep a model safe, under whatever name. */
const safety = /safe|guard|moderat/;

/** Returns true for a member that no refusal takes out of a request. */
export function isProtected(path: string): boolean {
  const parts = path.split('.').map(plainMember);
  return parts.some((part) => kept.has(part) || safety.test(part)) || containers.has(parts.at(-1) ?? '');
}
