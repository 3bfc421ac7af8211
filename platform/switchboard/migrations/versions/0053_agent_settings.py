"""Settings of agents as one document."""

from alembic import op

revision = "0053"
down_revision = "0052"
oldest_program = "0053"

COLUMNS = """llm_provider llm_model llm_temperature system_prompt tts_provider tts_voice_id tts_model voice_speed
pronunciations stt_provider stt_model stt_language greeting_message end_call_silence_seconds max_call_duration_seconds
allow_interruptions interruption_min_words vad_confidence vad_start_secs vad_min_volume webhook_url knowledge_base_ids
tools disabled_tools allowed_numbers any_number queue_wait_seconds queue_fallback extraction_schema redaction disclosure
turn_detection noise_suppression voicemail_policy"""


def upgrade() -> None:
    op.execute("alter table agent add column settings jsonb not null")
    for column in COLUMNS.split():
        op.drop_column("agent", column)
