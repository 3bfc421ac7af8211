"""The plugin SDK: hooks, a base class for each capability, and their value types.

Plugins import this package and no other module of the platform.
"""

# ruff: noqa: I001 - sorted, but one statement for each module: "A as A" exports a name (PEP 484, section "Stub files")
from switchboard.plugin_sdk.actions import (
    ActionContext as ActionContext,
    ActionError as ActionError,
    ActionParams as ActionParams,
    ActionPostponed as ActionPostponed,
    ActionScope as ActionScope,
    AutomationAction as AutomationAction,
)
from switchboard.plugin_sdk.audio import (
    PHONE_MULAW as PHONE_MULAW,
    PHONE_PCM as PHONE_PCM,
    AudioFormat as AudioFormat,
    Encoding as Encoding,
    Samples as Samples,
    Word as Word,
    decode_audio as decode_audio,
    encode_audio as encode_audio,
    transcode_audio as transcode_audio,
)
from switchboard.plugin_sdk.callbacks import (
    CallbackReply as CallbackReply,
    CallbackRequest as CallbackRequest,
    InvalidCallback as InvalidCallback,
)
from switchboard.plugin_sdk.calendars import (
    AccountRefused as AccountRefused,
    BusyTime as BusyTime,
    CalendarChanges as CalendarChanges,
    CalendarEvent as CalendarEvent,
    CalendarProvider as CalendarProvider,
    CalendarWatch as CalendarWatch,
    ChangeReport as ChangeReport,
    EventChanged as EventChanged,
    EventDraft as EventDraft,
    OAuthAccount as OAuthAccount,
    OAuthCalendarProvider as OAuthCalendarProvider,
    OAuthService as OAuthService,
    RemoteCalendar as RemoteCalendar,
    TimeTaken as TimeTaken,
)
from switchboard.plugin_sdk.carrier_extensions import (
    BrowserPhone as BrowserPhone,
    BrowserSocket as BrowserSocket,
    CallProgress as CallProgress,
    CheckedPart as CheckedPart,
    MeasuredCall as MeasuredCall,
    SimulatedCall as SimulatedCall,
    SimulatedCarrier as SimulatedCarrier,
    SpokenLine as SpokenLine,
    TrunkCarrier as TrunkCarrier,
    is_client_identity as is_client_identity,
)
from switchboard.plugin_sdk.class_validation import API_VERSION as API_VERSION
from switchboard.plugin_sdk.commands import (
    CarrierCall as CarrierCall,
    Installation as Installation,
    InstallationAccess as InstallationAccess,
)
from switchboard.plugin_sdk.embeddings import EmbeddingProvider as EmbeddingProvider, Embeddings as Embeddings
from switchboard.plugin_sdk.event_watchers import EventWatcher as EventWatcher, PublishedEvent as PublishedEvent
from switchboard.plugin_sdk.provider import Extension as Extension
from switchboard.plugin_sdk.hooks import hookimpl as hookimpl
from switchboard.plugin_sdk.llm import (
    KNOWLEDGE as KNOWLEDGE,
    ChatEvent as ChatEvent,
    ChatRequest as ChatRequest,
    JsonObject as JsonObject,
    LLMProvider as LLMProvider,
    Message as Message,
    ModelUsage as ModelUsage,
    TextDelta as TextDelta,
    ToolCall as ToolCall,
    ToolSpec as ToolSpec,
)
from switchboard.plugin_sdk.media import (
    DigitPressed as DigitPressed,
    Frame as Frame,
    MarkReached as MarkReached,
    MediaCodec as MediaCodec,
    MediaEvent as MediaEvent,
    MediaStarted as MediaStarted,
    MediaStopped as MediaStopped,
    UnsupportedAudio as UnsupportedAudio,
)
from switchboard.plugin_sdk.phone_numbers import AvailableNumber as AvailableNumber, BoughtNumber as BoughtNumber
from switchboard.plugin_sdk.private_data import (
    PrivateDataDetector as PrivateDataDetector,
    RemotePrivateDataDetector as RemotePrivateDataDetector,
    SpokenText as SpokenText,
)
from switchboard.plugin_sdk.processes import (
    ProcessContext as ProcessContext,
    ProviderAccount as ProviderAccount,
    ProviderProcess as ProviderProcess,
)
from switchboard.plugin_sdk.provider import (
    OPERATOR_ONLY as OPERATOR_ONLY,
    OutcomeUnknown as OutcomeUnknown,
    Provider as Provider,
    ProviderError as ProviderError,
    ProviderSettings as ProviderSettings,
    UnsupportedRequest as UnsupportedRequest,
    ask_with_rows as ask_with_rows,
)
from switchboard.plugin_sdk.public_addresses import ForbiddenAddress as ForbiddenAddress, NetworkPolicy as NetworkPolicy
from switchboard.plugin_sdk.public_http import PublicHttpClient as PublicHttpClient
from switchboard.plugin_sdk.sip import describe_sip_failure as describe_sip_failure
from switchboard.plugin_sdk.speech_to_text import (
    SpeechToTextProvider as SpeechToTextProvider,
    SpeechToTextStream as SpeechToTextStream,
    Transcript as Transcript,
    TranscriptionRequest as TranscriptionRequest,
    TurnReport as TurnReport,
    TurnState as TurnState,
    UtteranceStream as UtteranceStream,
)
from switchboard.plugin_sdk.telephony import (
    ACCEPT_KEY as ACCEPT_KEY,
    ACCEPT_PROMPTS as ACCEPT_PROMPTS,
    ACCEPT_SECONDS as ACCEPT_SECONDS,
    CLIENT_PREFIX as CLIENT_PREFIX,
    BrowserToken as BrowserToken,
    CallbackUrls as CallbackUrls,
    ConnectMedia as ConnectMedia,
    ForwardCall as ForwardCall,
    Instruction as Instruction,
    MessageFile as MessageFile,
    NumberOrder as NumberOrder,
    OutboundCall as OutboundCall,
    OutboundTextMessage as OutboundTextMessage,
    ReceivedCallback as ReceivedCallback,
    RecordingStream as RecordingStream,
    RejectCall as RejectCall,
    TelephonyCapabilities as TelephonyCapabilities,
    TelephonyProvider as TelephonyProvider,
    UnsubscribedRecipient as UnsubscribedRecipient,
    WarmTransfer as WarmTransfer,
    find_client_identity as find_client_identity,
)
from switchboard.plugin_sdk.telephony_events import (
    INVALID_NUMBER as INVALID_NUMBER,
    BrowserCall as BrowserCall,
    CallAccepted as CallAccepted,
    CallAnswered as CallAnswered,
    CallEnded as CallEnded,
    CallQuality as CallQuality,
    CalleeRinging as CalleeRinging,
    CarrierEvent as CarrierEvent,
    IncomingCall as IncomingCall,
    MachineDetected as MachineDetected,
    RecordingReady as RecordingReady,
    TextMessageReceived as TextMessageReceived,
    TextMessageStatus as TextMessageStatus,
    TransferTargetGone as TransferTargetGone,
    TransferTargetReady as TransferTargetReady,
    read_verstat as read_verstat,
)
from switchboard.plugin_sdk.text_encoding import TextEncoding as TextEncoding
from switchboard.plugin_sdk.text_to_speech import (
    SpeechChunk as SpeechChunk,
    SpeechRequest as SpeechRequest,
    TextToSpeechProvider as TextToSpeechProvider,
    TextToSpeechSettings as TextToSpeechSettings,
    Voice as Voice,
)
from switchboard.plugin_sdk.tools import (
    AgentTool as AgentTool,
    KeypadEntry as KeypadEntry,
    Origin as Origin,
    ToolContext as ToolContext,
    ToolError as ToolError,
    ToolParameters as ToolParameters,
    Variable as Variable,
)
from switchboard.plugin_sdk.turn_detectors import (
    PossibleTurn as PossibleTurn,
    TurnDetector as TurnDetector,
    TurnPrediction as TurnPrediction,
)
from switchboard.plugin_sdk.vector_stores import Chunk as Chunk, ChunkMatch as ChunkMatch, VectorStore as VectorStore
