"""The gateway: a process that holds SIP dialogs and RTP, and talks to the platform as every carrier does."""
