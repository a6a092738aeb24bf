-- Approvals: what a person was asked, and what was answered.

-- The desk: windows and tabs of the console, which the workbench's tools open and list.

-- Pairing: codes that an operator approved and a client has yet to exchange.
