-- SPDX-License-Identifier: MIT
--
-- Dissector for Wireshark and tshark of the frames of ACP, see kernel/core/PROTOCOL.md.
--
--	tshark -X lua_script:tools/observe/acp.lua -r FILE.pcap
--	wireshark -X lua_script:tools/observe/acp.lua FILE.pcap
--
-- or copy it to the directory that "tshark -G folders" calls Personal Lua Plugins. Frames are
-- detected by UDP port 16707 (a preference) and, on other ports, by a heuristic. Global addresses
-- are decoded if the capture contains a HELLO of the job, which has the number of ranks. Frames
-- that a receiver would reject are marked as malformed, with the reason, except for the tag, which
-- cannot be verified without the key of the job. The body of an encrypted frame is not decoded.

local acp = Proto("acp", "Advanced Communication Primitives")

local HEADER, NONCE_BLOCK, AEAD_TAG, ACK_MAP, HELLO_BODY = 48, 16, 16, 64, 16
local MESSAGE, MESSAGE_DATA, MORE, WORD, CRC, MESSAGES_MAX = 24, 32, 24, 16, 8, 64
local SHORT = 128			-- bytes of payload that may share a frame, and of a PING
local RANKS_MAX = 0xffffff

local DATA, ACK, HELLO = 1, 2, 3
local frame_types = { [DATA] = "DATA", [ACK] = "ACK", [HELLO] = "HELLO" }

local FENCE, BULK, CRC_FLAG, ASK, LAZY, AEAD, MARKS = 1, 2, 4, 8, 16, 32, 192
local MORE_FLAG = ASK			-- the same bit, in DATA
local frame_flags = {
	{ FENCE, "fence" }, { BULK, "bulk" }, { CRC_FLAG, "crc" }, { MORE_FLAG, "more" }, { LAZY, "lazy" },
	{ AEAD, "aead" },
}
local hello_flags = { { ASK, "ask" }, { AEAD, "aead" } }

-- Flags that are valid for each type of frame besides AEAD, and the size of its body.
local frame_rules = {
	[DATA] = { flags = FENCE + BULK + CRC_FLAG + MORE_FLAG + LAZY + MARKS, least = MESSAGE, most = 65535 },
	[ACK] = { flags = MARKS, least = 0, most = ACK_MAP },
	[HELLO] = { flags = ASK, least = HELLO_BODY, most = HELLO_BODY },
}

local M_DATA, M_CMD, M_DONE, M_BARRIER, M_PING, M_WORDS, M_ASK, M_GRANT = 1, 2, 3, 4, 5, 6, 7, 8
local message_types = {
	[M_DATA] = "DATA", [M_CMD] = "CMD", [M_DONE] = "DONE", [M_BARRIER] = "BARRIER", [M_PING] = "PING",
	[M_WORDS] = "WORDS", [M_ASK] = "ASK", [M_GRANT] = "GRANT",
}

local LAST, FAIL, ORDERED, RELEASE, ABORT, BROKEN, ANSWER = 1, 2, 4, 8, 16, 32, 64
local BEHIND, GRANTED = RELEASE, ABORT -- of DATA; BEHIND of WORDS and ASK, too
local message_flags = {
	{ LAST, "last" }, { FAIL, "fail" }, { ORDERED, "ordered" }, { RELEASE, "release" }, { ABORT, "abort" },
	{ BROKEN, "broken" }, { ANSWER, "answer" },
}
local data_flags = {
	{ LAST, "last" }, { FAIL, "fail" }, { ORDERED, "ordered" }, { BEHIND, "behind" }, { GRANTED, "granted" },
}

local function flags_of(message_type)
	local data = message_type == M_DATA or message_type == M_WORDS or message_type == M_ASK
	return data and data_flags or message_flags
end

local message_rules = {
	[M_DATA] = {
		flags = LAST + FAIL + ORDERED + BEHIND + GRANTED, status = true, depends = true, most = 2 ^ 32, more = true,
	},
	[M_CMD] = { flags = ORDERED + FAIL, status = true, depends = true, op = true },
	[M_DONE] = { flags = 0, status = true },
	[M_BARRIER] = { flags = RELEASE + ABORT + BROKEN },
	[M_PING] = { flags = ANSWER, most = SHORT },
	[M_WORDS] = { flags = ORDERED + BEHIND, depends = true, most = 2 ^ 32, words = true },
	[M_ASK] = { flags = FAIL + ORDERED + BEHIND, status = true, depends = true, op = true },
	[M_GRANT] = { flags = FAIL, status = true },
}

local COPY, CAS4, CAS8, STRIDED, COPY_ADD, INDIRECT, SEND, SCATTER, GATHER = 1, 2, 3, 14, 16, 17, 19, 20, 21
local ACCUMULATE, ACCUMULATE_ADD = 24, 26
local ops = {
	[0] = "none", "copy", "cas4", "cas8", "swap4", "swap8", "add4", "add8", "xor4", "xor8", "or4", "or8",
	"and4", "and8", "strided", "copy_set", "copy_add", "indirect", "append", "send", "scatter", "gather",
	[24] = "accumulate", [25] = "accumulate_set", [26] = "accumulate_add",
}

-- How numbers are combined, and of which type they are.
local combinations = { [0] = "sum", "prod", "min", "max", "and", "or", "xor", "replace" }
local number_types = { [0] = "int32", "int64", "uint32", "uint64", "float", "double" }

local statuses = {
	[0] = "ok", "op", "ga", "stag", "range", "access", "align", "rank", "nomem", "timeout", "peer", "route",
	"order", "abort", "again", "chain",
}

local stags = { [0] = "starter", "heap", "library", "reserved" }

-- ---- fields ----

local field = {
	tag = ProtoField.uint64("acp.tag", "Tag", base.HEX),
	version = ProtoField.uint8("acp.version", "Version"),
	type = ProtoField.uint8("acp.type", "Type", base.DEC, frame_types),
	flags = ProtoField.uint8("acp.flags", "Flags", base.HEX),
	marks = ProtoField.uint8("acp.flags.marks", "Marks: acknowledgements of marked frames, modulo 4",
				 base.DEC, nil, MARKS),
	color = ProtoField.uint8("acp.color", "Color"),
	job = ProtoField.uint32("acp.job", "Job"),
	generation = ProtoField.uint16("acp.generation", "Generation"),
	length = ProtoField.uint16("acp.length", "Length of the body"),
	node = ProtoField.uint32("acp.node", "Sending node"),
	epoch_src = ProtoField.uint32("acp.epoch_src", "Epoch of the sender", base.HEX),
	epoch_dst = ProtoField.uint32("acp.epoch_dst", "Epoch of the receiver", base.HEX),
	seq = ProtoField.uint64("acp.seq", "Number"),
	ack = ProtoField.uint64("acp.ack", "Acknowledges all before"),
	again = ProtoField.framenum("acp.again", "Sent before in", base.NONE, frametype.RETRANS_PREV),
	map = ProtoField.bytes("acp.map", "Map of frames beyond"),
	applied = ProtoField.string("acp.applied", "Applied beyond, too"),
	nprocs = ProtoField.uint32("acp.hello.nprocs", "Ranks"),
	nodes = ProtoField.uint32("acp.hello.nodes", "Nodes"),
	digest = ProtoField.uint64("acp.hello.digest", "Digest of the set-up", base.HEX),
	nonce = ProtoField.bytes("acp.nonce", "Nonce"),
	cipher = ProtoField.uint32("acp.cipher", "Cipher", base.HEX),
	encrypted = ProtoField.bytes("acp.encrypted", "Encrypted body"),
	aead_tag = ProtoField.bytes("acp.aead_tag", "AEAD tag"),
	rest = ProtoField.bytes("acp.rest", "Bytes that make no sense"),
	m = {
		item = ProtoField.bytes("acp.msg", "Message"),
		type = ProtoField.uint8("acp.msg.type", "Type", base.DEC, message_types),
		flags = ProtoField.uint8("acp.msg.flags", "Flags", base.HEX),
		op = ProtoField.uint8("acp.msg.op", "Operation", base.DEC, ops),
		status = ProtoField.uint8("acp.msg.status", "Status", base.DEC, statuses),
		depends = ProtoField.uint16("acp.msg.depends", "Depends on commands from so many before"),
		upto = ProtoField.uint16("acp.msg.upto", "... to so many before"),
		origin = ProtoField.uint32("acp.msg.origin", "Origin"),
		length = ProtoField.uint32("acp.msg.length", "Length of the payload"),
		ticket = ProtoField.uint64("acp.msg.ticket", "Ticket"),
		dst = ProtoField.uint64("acp.msg.dst", "Destination", base.HEX),
		src = ProtoField.uint64("acp.msg.src", "Source", base.HEX),
		size = ProtoField.uint64("acp.msg.size", "Size"),
		a = ProtoField.uint64("acp.msg.a", "Operand a", base.HEX),
		b = ProtoField.uint64("acp.msg.b", "Operand b", base.HEX),
		block = ProtoField.uint32("acp.msg.block", "Bytes of a block"),
		count = ProtoField.uint32("acp.msg.count", "Blocks"),
		dst_stride = ProtoField.int64("acp.msg.dst_stride", "Stride of the destination"),
		src_stride = ProtoField.int64("acp.msg.src_stride", "Stride of the source"),
		position = ProtoField.uint64("acp.msg.position", "Position in the blocks, end to end"),
		tag = ProtoField.uint64("acp.msg.tag", "Tag of the message", base.HEX),
		flag_ga = ProtoField.uint64("acp.msg.flag_ga", "Flag", base.HEX),
		operand = ProtoField.uint64("acp.msg.operand", "Operand", base.HEX),
		combination = ProtoField.uint8("acp.msg.combination", "Combination", base.DEC, combinations),
		number_type = ProtoField.uint8("acp.msg.number_type", "Type of the numbers", base.DEC, number_types),
		numbers = ProtoField.uint64("acp.msg.numbers", "Numbers"),
		unused = ProtoField.uint64("acp.msg.unused", "Reserved", base.HEX),
		crc = ProtoField.uint32("acp.msg.crc", "CRC-32C of the payload", base.HEX),
		reserved = ProtoField.uint32("acp.msg.reserved", "Reserved", base.HEX),
		payload = ProtoField.bytes("acp.msg.payload", "Payload"),
		padding = ProtoField.bytes("acp.msg.padding", "Padding"),
		mismatched = ProtoField.uint32("acp.msg.mismatched", "Node with another set-up"),
		left = ProtoField.uint32("acp.msg.left", "Rank that left"),
	},
	ga = {
		rank = ProtoField.uint32("acp.ga.rank", "Rank"),
		color = ProtoField.uint8("acp.ga.color", "Color"),
		stag = ProtoField.uint32("acp.ga.stag", "STag"),
		offset = ProtoField.uint64("acp.ga.offset", "Offset", base.HEX),
	},
}

-- A field per flag, in addition to the list of all.
local function add_flag_fields(flags, prefix, to)
	for _, flag in ipairs(flags) do
		to[flag[2]] = ProtoField.bool(prefix .. flag[2], flag[2], 8, nil, flag[1])
	end
end

field.flag, field.m.flag = {}, {}
add_flag_fields(frame_flags, "acp.flags.", field.flag)
field.flag.ask = ProtoField.bool("acp.flags.ask", "ask", 8, nil, ASK)
add_flag_fields(message_flags, "acp.msg.flags.", field.m.flag)
field.m.flag.behind = ProtoField.bool("acp.msg.flags.behind", "behind", 8, nil, BEHIND)
field.m.flag.granted = ProtoField.bool("acp.msg.flags.granted", "granted", 8, nil, GRANTED)
field.m.entry = ProtoField.uint64("acp.msg.entry", "Entry", base.HEX)

local all_fields = {}
local function collect(from)
	for _, f in pairs(from) do
		if type(f) == "table" then collect(f) else table.insert(all_fields, f) end
	end
end
collect(field)
acp.fields = all_fields

local malformed = ProtoExpert.new("acp.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local odd = ProtoExpert.new("acp.odd", "Not as a sender should", expert.group.PROTOCOL, expert.severity.WARN)
local again = ProtoExpert.new("acp.sent_again", "Sent again", expert.group.SEQUENCE, expert.severity.NOTE)
local failed = ProtoExpert.new("acp.failed", "A command failed", expert.group.RESPONSE_CODE, expert.severity.NOTE)
local cut = ProtoExpert.new("acp.cut", "The capture holds a part of the frame only", expert.group.UNDECODED,
			    expert.severity.WARN)
acp.experts = { malformed, odd, again, failed, cut }

-- ---- helpers ----

local function has(flags, flag)
	return math.floor(flags / flag) % 2 == 1
end

-- Return the bits of "flags" that are not in "allowed".
local function beyond(flags, allowed)
	local rest, bit = 0, 1
	while bit < 256 do
		if has(flags, bit) and not has(allowed, bit) then rest = rest + bit end
		bit = bit * 2
	end
	return rest
end

local function names(flags, of)
	local list = {}
	for _, flag in ipairs(of) do
		if has(flags, flag[1]) then table.insert(list, flag[2]) end
	end
	return table.concat(list, " ")
end

local function padded(length)
	return math.ceil(length / 8) * 8
end

-- State from other frames of the capture; reset when another capture is opened.
local ranks_of, first_sent, sent_before

function acp.init()
	ranks_of, first_sent, sent_before = {}, {}, {}
end

-- Below, "c" is the current frame: tvb, tree, stop (end of its body), texts (its text in the list
-- of frames), job (with generation), seq, bulk, crc.

local function bad(tree, why)
	tree:add_proto_expert_info(malformed, "Malformed: " .. why)
end

-- Check that "size" bytes exist at "at". If not, show the rest, and the reason.
local function there(c, at, count)
	if at + count <= c.tvb:len() then return true end
	c.tree:add_proto_expert_info(cut)
	return false
end

-- ---- global addresses ----

-- Return the widths of the fields of a global address in a job with so many ranks: uapi/acp_ga.h.
local function widths(nprocs)
	local rank_bits = 0
	while math.floor(nprocs / 2 ^ rank_bits) > 0 do rank_bits = rank_bits + 1 end
	local rest = 62 - rank_bits
	local offset_bits
	if rest > 60 then offset_bits = rest - 21
	elseif rest >= 54 then offset_bits = rest - 20
	elseif rest >= 40 then offset_bits = 34
	else offset_bits = rest - 6 end
	return rank_bits, rest - offset_bits, offset_bits
end

-- Return "bits" bits of a 64-bit number from bit "shift" on, as a UInt64.
local function bits_of(number, shift, bits)
	return number:rshift(shift):lshift(64 - bits):rshift(64 - bits)
end

local function address(c, tree, f, at)
	local range = c.tvb(at, 8)
	local item, nprocs = tree:add(f, range), ranks_of[c.job]
	if not nprocs then return end
	local ga = range:uint64()
	local rank_bits, stag_bits, offset_bits = widths(nprocs)
	local rank = bits_of(ga, 64 - rank_bits, rank_bits):tonumber() - 1
	if rank < 0 or rank >= nprocs then
		item:append_text(" (of no rank)")
		return
	end
	local stag = bits_of(ga, offset_bits, stag_bits):tonumber()
	local offset = bits_of(ga, 0, offset_bits)
	local color = bits_of(ga, 64 - rank_bits - 2, 2):tonumber()
	item:append_text(string.format(" (rank %d, color %d, STag %d%s, offset 0x%s)", rank, color, stag,
				       stags[stag] and " " .. stags[stag] or "",
				       offset:tohex():gsub("^0+(.)", "%1")))
	item:add(field.ga.rank, range, rank):set_generated()
	item:add(field.ga.color, range, color):set_generated()
	item:add(field.ga.stag, range, stag):set_generated()
	item:add(field.ga.offset, range, offset):set_generated()
end

-- ---- messages ----

-- Return why a message is malformed, or nil.
local function message_fault(m)
	local rule = message_rules[m.type]
	if beyond(m.flags, rule.flags) ~= 0 then return "flags that its type has not" end
	local turns = m.type == M_DATA or m.type == M_ASK or rule.words
	if turns and has(m.flags, ORDERED) and m.op ~= SEND and not has(m.flags, FAIL) then
		return "a turn, which only messages into a mailbox have"
	end
	if turns and has(m.flags, BEHIND) and
	   (not has(m.flags, ORDERED) or m.depends == 0 or m.upto ~= m.depends) then
		return "behind more or less than one message"
	end
	if m.type == M_DATA and has(m.flags, GRANTED) and
	   (has(m.flags, ORDERED) or m.op ~= SEND and not has(m.flags, FAIL)) then
		return "granted, and no message without a turn"
	end
	if m.type == M_ASK and m.op ~= SEND then return "asks, and is no message to a mailbox" end
	if rule.words then
		if m.op ~= 0 and m.op ~= SEND then return "an operation that WORDS have not" end
		if m.depends ~= 0 and not has(m.flags, BEHIND) then return "depends on others, which words do not" end
	elseif m.op ~= 0 and not rule.op and not rule.more then
		return "an operation in what is no command"
	end
	if m.op ~= 0 and rule.more then
		local numbers = m.op >= ACCUMULATE and m.op <= ACCUMULATE_ADD
		if not numbers and (m.op < STRIDED or m.op > SCATTER) then return "an operation that DATA has not" end
		if has(m.flags, FAIL) then return "an operation with FAIL" end
		local piece = m.op == STRIDED or (m.op >= INDIRECT and m.op <= ACCUMULATE)
		if numbers and (m.length == 0 or m.length > 4096) then return "no numbers, or too many" end
		if piece and m.length == 0 and not (m.op == SEND and has(m.flags, LAST)) then return "a piece of no bytes" end
		if not piece and not has(m.flags, LAST) then return "a flag to change before the end" end
	end
	if rule.op and (m.op == 0 or not ops[m.op]) then return "no such operation" end
	if m.status ~= 0 and not rule.status then return "a status, which its type has not" end
	if m.depends + m.upto ~= 0 then
		if not rule.depends then return "depends on others, which its type does not" end
		if m.upto == 0 or m.upto > m.depends then return "upto is not within 1 .. depends" end
	end
	if m.length ~= 0 and (not rule.most or has(m.flags, FAIL)) then return "a length, and no payload" end
	if m.length > (rule.most or 0) then return "a payload that is longer than its type has" end
	if m.type == M_WORDS and (m.length < 2 * WORD or m.length % WORD ~= 0) then
		return "a length that is not of two words or more"
	end
	if m.type ~= M_DONE and has(m.flags, FAIL) ~= (m.status ~= 0) then
		return "FAIL and a status other than ok come together"
	end
end

local function message_size(m)
	if m.type == M_DATA then return MESSAGE_DATA + (m.op ~= 0 and MORE or 0) + padded(m.length) end
	if m.type == M_WORDS and m.op ~= 0 then return MESSAGE_DATA + padded(m.length) end
	if m.type == M_PING or m.type == M_WORDS then return MESSAGE + padded(m.length) end
	if m.type == M_ASK then return 48 end
	if m.type == M_GRANT then return 40 end
	if m.type == M_CMD and m.op >= STRIDED then return 64 end
	if m.type == M_CMD then return (m.op == CAS4 or m.op == CAS8) and 56 or 48 end
	return MESSAGE
end

local function message_text(m)
	local flags = names(m.flags, flags_of(m.type))
	local text = message_types[m.type]
	if m.type == M_CMD or m.op ~= 0 then text = text .. " " .. (ops[m.op] or m.op) end
	if flags ~= "" then text = text .. " [" .. flags .. "]" end
	if m.type == M_BARRIER then
		if has(m.flags, BROKEN) or has(m.flags, ABORT) then return text end
		return text .. " " .. m.ticket
	end
	text = text .. string.format(" %d:%s", m.origin, m.ticket)
	if m.type == M_DATA or m.type == M_PING then text = text .. string.format(" %d bytes", m.length) end
	if m.type == M_WORDS then text = text .. string.format(" %d words", math.floor(m.length / WORD)) end
	if m.type == M_DONE or m.status ~= 0 then text = text .. " " .. (statuses[m.status] or m.status) end
	return text
end

local function add_flags(c, tree, at, f, list, own)
	local item = tree:add(f, c.tvb(at, 1))
	local text = names(c.tvb(at, 1):uint(), list)
	if text ~= "" then item:append_text(" (" .. text .. ")") end
	for _, flag in ipairs(list) do item:add(own[flag[2]], c.tvb(at, 1)) end
	return item
end

local function message_header(c, tree, at, m)
	local tvb = c.tvb
	tree:add(field.m.type, tvb(at, 1))
	add_flags(c, tree, at + 1, field.m.flags, flags_of(m.type), field.m.flag)
	tree:add(field.m.op, tvb(at + 2, 1))
	tree:add(field.m.status, tvb(at + 3, 1))
	tree:add(field.m.depends, tvb(at + 4, 2))
	tree:add(field.m.upto, tvb(at + 6, 2))
	tree:add(field.m.origin, tvb(at + 8, 4)):append_text(message_rules[m.type].status and " (rank)" or " (node)")
	tree:add(field.m.length, tvb(at + 12, 4))
	tree:add(field.m.ticket, tvb(at + 16, 8))
end

local function barrier(c, tree, at, m)
	if not has(m.flags, BROKEN) then return end
	local left, mismatched = c.tvb(at + 16, 4):uint(), c.tvb(at + 20, 4):uint()
	if left > 0 then tree:add(field.m.left, c.tvb(at + 16, 4), left - 1) end
	if mismatched > 0 then tree:add(field.m.mismatched, c.tvb(at + 20, 4), mismatched - 1) end
end

-- Number and size of blocks. A descriptor that needs no strided copy is malformed.
local function desc(c, tree, at)
	tree:add(field.m.count, c.tvb(at, 4))
	tree:add(field.m.block, c.tvb(at + 4, 4))
	if c.tvb(at, 4):uint() < 2 or c.tvb(at + 4, 4):uint() == 0 then bad(tree, "fewer than two blocks, or empty ones") end
end

-- Operation and type of numbers, the last two of eight bytes; before them their count, or 0.
local function numbers(c, tree, at, m)
	local op, type = c.tvb(at + 7, 1):uint(), c.tvb(at + 6, 1):uint()
	if m.type == M_CMD then
		tree:add(field.m.numbers, c.tvb(at, 6), c.tvb(at, 6):uint64())
		if c.tvb(at, 6):uint64() == UInt64(0) then bad(tree, "no numbers") end
	elseif c.tvb(at, 6):uint64() ~= UInt64(0) then
		bad(tree, "reserved bytes before the type are in use")
	end
	tree:add(field.m.number_type, c.tvb(at + 6, 1))
	local item = tree:add(field.m.combination, c.tvb(at + 7, 1))
	if not combinations[op] or not number_types[type] or (type > 3 and op > 3 and op < 7) then
		bad(item, "no such operation on this type")
		return
	end
	local width = type % 2 == 1 and 8 or 4
	if m.length % width ~= 0 then bad(item, "a part of a number") end
	if m.type == M_DATA and c.tvb(at - 17, 1):uint() % width ~= 0 then bad(item, "an address that is not aligned") end
end

-- Eight bytes that must be 0.
local function reserved(c, tree, at, fault)
	local item = tree:add(field.m.unused, c.tvb(at, 8))
	if c.tvb(at, 8):uint64() ~= UInt64(0) then bad(item, fault) end
end

local function command(c, tree, at, m, size)
	address(c, tree, field.m.dst, at + 24)
	address(c, tree, field.m.src, at + 32)
	if m.op == STRIDED then
		desc(c, tree, at + 40)
		tree:add(field.m.dst_stride, c.tvb(at + 48, 8))
		tree:add(field.m.src_stride, c.tvb(at + 56, 8))
		return
	elseif m.op >= INDIRECT and m.op <= GATHER then
		tree:add(field.m.size, c.tvb(at + 40, 8))
		reserved(c, tree, at + 48, "reserved bytes behind the size are in use")
		if m.op == SEND then
			tree:add(field.m.tag, c.tvb(at + 56, 8))
		else
			reserved(c, tree, at + 56, "reserved bytes behind the size are in use")
		end
		return
	elseif m.op >= ACCUMULATE then
		numbers(c, tree, at + 40, m)
		if m.op == ACCUMULATE then return end
		address(c, tree, field.m.flag_ga, at + 48)
		tree:add(field.m.operand, c.tvb(at + 56, 8))
		return
	elseif size == 64 then
		tree:add(field.m.size, c.tvb(at + 40, 8))
		address(c, tree, field.m.flag_ga, at + 48)
		tree:add(field.m.operand, c.tvb(at + 56, 8))
		return
	end
	tree:add(m.op == COPY and field.m.size or field.m.a, c.tvb(at + 40, 8))
	if size == 56 then tree:add(field.m.b, c.tvb(at + 48, 8)) end
end

-- The payload, which may be incomplete if the snapshot length of the capture is limited.
local function payload(c, tree, at, m)
	local here = math.min(m.length, c.tvb:len() - at)
	if here > 0 then tree:add(field.m.payload, c.tvb(at, here)) end
	local pad = padded(m.length) - m.length
	if here < m.length or not there(c, at + m.length, pad) then
		tree:add_proto_expert_info(cut)
		return
	end
	if pad == 0 then return end
	local item = tree:add(field.m.padding, c.tvb(at + m.length, pad))
	for i = 0, pad - 1 do
		if c.tvb(at + m.length + i, 1):uint() ~= 0 then
			item:add_proto_expert_info(odd, "Padding other than 0")
			return
		end
	end
end

-- The fields after the destination in a DATA message with an operation.
local function more(c, tree, at, m)
	if m.op == ACCUMULATE then
		reserved(c, tree, at, "a flag without a signal")
		reserved(c, tree, at + 8, "an operand without a signal")
		numbers(c, tree, at + 16, m)
		return
	elseif m.op > ACCUMULATE then
		address(c, tree, field.m.flag_ga, at)
		tree:add(field.m.operand, c.tvb(at + 8, 8))
		numbers(c, tree, at + 16, m)
		return
	elseif m.op >= INDIRECT then
		tree:add(field.m.size, c.tvb(at, 8))
		local item = tree:add(field.m.position, c.tvb(at + 8, 8))
		local size, position, length = c.tvb(at, 8):uint64(), c.tvb(at + 8, 8):uint64(), UInt64(m.length)
		if position > size or length > size - position then bad(item, "a piece beyond the copy") end
		if m.op == SEND then
			tree:add(field.m.tag, c.tvb(at + 16, 8))
		else
			reserved(c, tree, at + 16, "reserved bytes behind the position are in use")
		end
		return
	elseif m.op ~= STRIDED then
		address(c, tree, field.m.flag_ga, at)
		tree:add(field.m.operand, c.tvb(at + 8, 8))
		reserved(c, tree, at + 16, "reserved bytes behind the operand are in use")
		return
	end
	tree:add(field.m.dst_stride, c.tvb(at, 8))
	desc(c, tree, at + 8)
	local item = tree:add(field.m.position, c.tvb(at + 16, 8))
	local size = c.tvb(at + 8, 4):uint64() * c.tvb(at + 12, 4):uint64()
	local position, length = c.tvb(at + 16, 8):uint64(), UInt64(m.length)
	if position > size or length > size - position then bad(item, "a piece beyond the blocks") end
end

local function data_message(c, tree, at, m)
	address(c, tree, field.m.dst, at + 24)
	local from = at + MESSAGE_DATA
	if m.op ~= 0 then
		more(c, tree, from, m)
		from = from + MORE
	end
	if c.crc then
		if not there(c, from, CRC) then return end
		tree:add(field.m.crc, c.tvb(from, 4))
		local item = tree:add(field.m.reserved, c.tvb(from + 4, 4))
		if c.tvb(from + 4, 4):uint() ~= 0 then bad(item, "reserved bytes behind the checksum are in use") end
		from = from + CRC
	end
	payload(c, tree, from, m)
end

local function words(c, tree, at, m)
	if m.op ~= 0 then
		if not there(c, at, 8) then return end
		address(c, tree, field.m.dst, at)
		at = at + 8
	end
	for from = at, at + m.length - WORD, WORD do
		if not there(c, from, WORD) then return end
		if m.op ~= 0 then
			tree:add(field.m.tag, c.tvb(from, 8))
		else
			address(c, tree, field.m.dst, from)
		end
		tree:add(field.m.payload, c.tvb(from + 8, 8))
	end
end

local function ask(c, tree, at, m)
	address(c, tree, field.m.dst, at)
	if m.type == M_GRANT then
		tree:add(field.m.entry, c.tvb(at + 8, 8))
	else
		tree:add(field.m.size, c.tvb(at + 8, 8))
		tree:add(field.m.tag, c.tvb(at + 16, 8))
	end
end

local function read_message(c, at)
	local tvb = c.tvb
	return {
		type = tvb(at, 1):uint(), flags = tvb(at + 1, 1):uint(), op = tvb(at + 2, 1):uint(),
		status = tvb(at + 3, 1):uint(), depends = tvb(at + 4, 2):uint(), upto = tvb(at + 6, 2):uint(),
		origin = tvb(at + 8, 4):uint(), length = tvb(at + 12, 4):uint(),
		ticket = tostring(tvb(at + 16, 8):uint64()),
	}
end

local function rest_is_bad(c, at, why)
	local here = math.min(c.stop, c.tvb:len()) - at
	bad(here > 0 and c.tree:add(field.rest, c.tvb(at, here)) or c.tree, why)
end

local function show_message(c, at, m, size)
	local tree = c.tree:add(field.m.item, c.tvb(at, math.min(size, c.tvb:len() - at)))
	local text = message_text(m)
	tree:set_text("Message: " .. text)
	table.insert(c.texts, text)
	message_header(c, tree, at, m)
	local fault = message_fault(m)
	if fault then bad(tree, fault) end
	if m.status ~= 0 then
		tree:add_proto_expert_info(failed, "Failed with status " .. (statuses[m.status] or m.status))
	end
	if m.type == M_DATA then data_message(c, tree, at, m)
	elseif m.type == M_CMD then command(c, tree, at, m, size)
	elseif m.type == M_PING then payload(c, tree, at + MESSAGE, m)
	elseif m.type == M_WORDS and not fault then words(c, tree, at + MESSAGE, m)
	elseif m.type == M_ASK or m.type == M_GRANT then ask(c, tree, at + MESSAGE, m)
	elseif m.type == M_BARRIER then barrier(c, tree, at, m) end
	return not fault
end

-- Dissect the message at "at". Returns the position of the next one, or nil if it is unknown.
local function message(c, at)
	if at + MESSAGE > c.stop then return rest_is_bad(c, at, "too short for a message") end
	if not there(c, at, MESSAGE) then return end
	local m = read_message(c, at)
	if not message_rules[m.type] then return rest_is_bad(c, at, "no such type of message") end
	local size = message_size(m)
	local gap = c.crc and CRC or 0
	if at + size + gap > c.stop then return rest_is_bad(c, at, "a message that is longer than its frame") end
	local fixed = m.type == M_DATA and size - padded(m.length) or (m.type == M_PING or m.type == M_WORDS) and MESSAGE or size
	if not there(c, at, fixed) then return end
	if not show_message(c, at, m, size + gap) then return end
	if c.bulk and m.type ~= M_DATA then bad(c.tree, "BULK, and a message that is not DATA") end
	if c.bulk and m.type == M_DATA and c.more ~= (m.op ~= 0) then bad(c.tree, "MORE and an operation come together") end
	if not c.bulk and m.length > SHORT and m.type ~= M_WORDS then
		c.tree:add_proto_expert_info(odd, "A long payload without BULK")
	end
	return at + size + gap, m.type == M_WORDS and math.floor(m.length / WORD) or 1
end

local function messages(c, at)
	local count, more = 0, 0
	while at and at < c.stop do
		if count >= MESSAGES_MAX then return rest_is_bad(c, at, "more than 64 messages") end
		if count > 0 and c.bulk then return rest_is_bad(c, at, "more than one message with BULK") end
		at, more = message(c, at)
		count = count + (more or 0)
		if count > MESSAGES_MAX then return bad(c.tree, "more than 64 messages") end
	end
end

-- ---- bodies ----

-- Return the numbers in a bit map, as ranges.
local function map_text(bytes, ack)
	local list, from, to = {}, nil, nil
	local function flush()
		if from then
			local first, last = ack + 1 + UInt64(from), ack + 1 + UInt64(to)
			table.insert(list, from == to and tostring(first) or tostring(first) .. "-" .. tostring(last))
		end
	end
	for i = 0, ACK_MAP * 8 - 1 do
		local byte = bytes:get_index(math.floor(i / 64) * 8 + 7 - math.floor(i % 64 / 8))
		if has(byte, 2 ^ (i % 8)) then
			if to ~= i - 1 then
				flush()
				from = i
			end
			to = i
		end
	end
	flush()
	return table.concat(list, ", ")
end

local function ack_body(c, at)
	if at == c.stop or not there(c, at, ACK_MAP) then return end
	local range = c.tvb(at, ACK_MAP)
	c.tree:add(field.map, range)
	local text = map_text(range:bytes(), c.tvb(40, 8):uint64())
	c.tree:add(field.applied, range, text):set_generated()
	if text == "" then c.tree:add_proto_expert_info(odd, "An empty map") end
	table.insert(c.texts, "and " .. text)
end

local function hello_body(c, at)
	if not there(c, at, HELLO_BODY) then return end
	c.tree:add(field.nprocs, c.tvb(at, 4))
	c.tree:add(field.nodes, c.tvb(at + 4, 4))
	c.tree:add(field.digest, c.tvb(at + 8, 8))
	local nprocs = c.tvb(at, 4):uint()
	if nprocs >= 1 and nprocs <= RANKS_MAX then ranks_of[c.job] = nprocs end
	table.insert(c.texts, string.format("%d ranks on %d nodes", nprocs, c.tvb(at + 4, 4):uint()))
end

local bodies = { [DATA] = messages, [ACK] = ack_body, [HELLO] = hello_body }

local function encrypted_body(c, at)
	if not there(c, at, NONCE_BLOCK) then return end
	c.tree:add(field.nonce, c.tvb(at, 12))
	local cipher = c.tvb(at + 12, 4):uint()
	local item = c.tree:add(field.cipher, c.tvb(at + 12, 4))
	local aes, aegis = cipher % 2 == 1, cipher % 8 >= 4
	item:append_text(aes and " (AES-256-GCM)" or aegis and " (AEGIS-128)" or " (ChaCha20-Poly1305)")
	if cipher > 15 then
		bad(item, "reserved bits of the nonce block are set")
	elseif aes and aegis then
		bad(item, "two ciphers")
	elseif (aes or aegis) and c.hello then
		bad(item, "a HELLO by a cipher that its receiver may not have")
	end
	local stop = math.min(c.stop - AEAD_TAG, c.tvb:len())
	if stop > at + NONCE_BLOCK then c.tree:add(field.encrypted, c.tvb(at + NONCE_BLOCK, stop - at - NONCE_BLOCK)) end
	table.insert(c.texts, "encrypted")
	if there(c, c.stop - AEAD_TAG, AEAD_TAG) then c.tree:add(field.aead_tag, c.tvb(c.stop - AEAD_TAG, AEAD_TAG)) end
end

-- ---- frames ----

local function read_header(tvb)
	local zero = UInt64(0)
	return {
		version = tvb(8, 1):uint(), type = tvb(9, 1):uint(), flags = tvb(10, 1):uint(),
		color = tvb(11, 1):uint(), job = tvb(12, 4):uint(), generation = tvb(16, 2):uint(),
		length = tvb(18, 2):uint(), node = tvb(20, 4):uint(), epoch_src = tvb(24, 4):uint(),
		epoch_dst = tvb(28, 4):uint(), numbered = tvb(32, 8):uint64() ~= zero,
		acknowledges = tvb(40, 8):uint64() ~= zero,
	}
end

-- Return why a receiver rejects a header, or nil. "size": of the datagram.
local function header_fault(h, size)
	if h.version ~= 1 then return "no such version" end
	local rule = frame_rules[h.type]
	if not rule then return "no such type of frame" end
	if h.length ~= size - HEADER then
		return string.format("its length says %d, the datagram %d", h.length, size - HEADER)
	end
	local aead = has(h.flags, AEAD)
	local body = h.length - (aead and NONCE_BLOCK + AEAD_TAG or 0)
	if body < rule.least or body > rule.most or (h.type == ACK and body % ACK_MAP ~= 0) then
		return "a body of that length is not of its type"
	end
	if beyond(h.flags, rule.flags + AEAD) ~= 0 then return "flags that its type has not" end
	local bulk, crc = has(h.flags, BULK), has(h.flags, CRC_FLAG)
	if bulk and aead then return "BULK and AEAD" end
	if crc and not bulk then return "CRC without BULK" end
	local more = h.type == DATA and has(h.flags, MORE_FLAG)
	if more and not bulk then return "MORE without BULK" end
	if bulk and body <= MESSAGE_DATA + (more and MORE or 0) + (crc and CRC or 0) then return "BULK without a payload" end
	if h.type == HELLO then
		if has(h.flags, ASK) and h.acknowledges then return "a question that repeats a time" end
		if not has(h.flags, ASK) and h.numbered then return "a time without a question" end
	elseif (h.type == DATA) ~= h.numbered then
		return "DATA has a number, and ACK has none"
	end
	if h.epoch_src == 0 then return "no epoch of its sender" end
	if h.type ~= HELLO and h.epoch_dst == 0 then return "no epoch of its receiver" end
	if h.job == 0 then return "job 0" end
end

-- Record the number of the frame, by sender and incarnation. True if it was seen before.
local function sent_already(c, pinfo, h)
	if not pinfo.visited then
		local key = table.concat({ tostring(pinfo.src), tostring(pinfo.dst), c.job, h.color, h.epoch_src,
					   c.seq }, " ")
		sent_before[pinfo.number] = first_sent[key]
		first_sent[key] = first_sent[key] or pinfo.number
	end
	return sent_before[pinfo.number]
end

local function number(c, pinfo, h)
	c.seq = tostring(c.tvb(32, 8):uint64())
	c.tree:add(field.seq, c.tvb(32, 8))
	local former = h.type == DATA and sent_already(c, pinfo, h)
	if former then
		c.tree:add(field.again, c.tvb(32, 8), former):set_generated()
		c.tree:add_proto_expert_info(again, "Sent again; first seen in frame " .. former)
		table.insert(c.texts, "again")
	end
end

local function header(c, pinfo, h)
	local tvb, tree = c.tvb, c.tree
	tree:add(field.tag, tvb(0, 8))
	tree:add(field.version, tvb(8, 1))
	tree:add(field.type, tvb(9, 1))
	add_flags(c, tree, 10, field.flags, h.type == HELLO and hello_flags or frame_flags, field.flag)
		:add(field.marks, tvb(10, 1))
	tree:add(field.color, tvb(11, 1))
	tree:add(field.job, tvb(12, 4))
	tree:add(field.generation, tvb(16, 2))
	tree:add(field.length, tvb(18, 2))
	tree:add(field.node, tvb(20, 4))
	tree:add(field.epoch_src, tvb(24, 4))
	tree:add(field.epoch_dst, tvb(28, 4))
	number(c, pinfo, h)
	tree:add(field.ack, tvb(40, 8))
end

local function summary(c, h)
	local text = frame_types[h.type] or "Frame of type " .. h.type
	local flags = names(h.flags, h.type == HELLO and hello_flags or frame_flags)
	if flags ~= "" then text = text .. " [" .. flags .. "]" end
	text = text .. " node " .. h.node
	if h.type == DATA then text = text .. " seq " .. c.seq end
	if h.type ~= HELLO then text = text .. " ack " .. tostring(c.tvb(40, 8):uint64()) end
	if #c.texts > 0 then text = text .. ": " .. table.concat(c.texts, "; ") end
	return text
end

-- Dissect one frame of "size" bytes, of which tvb contains the captured part. Returns its text.
local function show_frame(tvb, pinfo, tree, size)
	local c = { tvb = tvb, tree = tree:add(acp, tvb()), texts = {}, stop = size }
	if size < HEADER then
		bad(c.tree, "shorter than a header")
		return "Malformed frame"
	end
	if not there(c, 0, HEADER) then return "Frame of which the capture has no header" end
	local h = read_header(tvb)
	c.job = h.job .. "." .. h.generation
	c.hello = h.type == HELLO
	c.bulk, c.crc, c.more = has(h.flags, BULK), has(h.flags, CRC_FLAG), has(h.flags, MORE_FLAG)
	header(c, pinfo, h)
	local fault = header_fault(h, size)
	if fault then
		rest_is_bad(c, HEADER, fault)
	elseif has(h.flags, AEAD) then
		encrypted_body(c, HEADER)
	else
		bodies[h.type](c, HEADER)
	end
	local text = summary(c, h)
	c.tree:append_text(", " .. text)
	return fault and "Malformed: " .. fault or text
end

-- Return the length of the first frame of a GSO batch, or nil if it is none. A batch consists of
-- several frames of one size, except for the last one, that are not segmented at the point of
-- capture: at the sender, or with GRO.
local function batch_size(tvb)
	local size = tvb:reported_len()
	if size < HEADER or tvb:len() < HEADER then return end
	local h = read_header(tvb)
	local each = HEADER + h.length
	if each + HEADER <= size and not header_fault(h, each) and tvb:len() >= each + HEADER and
	   not header_fault(read_header(tvb(each):tvb()), math.min(each, size - each)) then return each end
end

local function show(tvb, pinfo, tree)
	local size = tvb:reported_len()
	local each = batch_size(tvb) or size
	local count = math.ceil(size / each)
	local first, text
	pinfo.cols.protocol = "ACP"
	for i = 0, count - 1 do
		local at = i * each
		if at < tvb:len() then
			local here = math.min(each, tvb:len() - at)
			text = show_frame(count > 1 and tvb(at, here):tvb() or tvb, pinfo, tree, math.min(each, size - at))
			first = first or text
		end
	end
	pinfo.cols.info = count > 1 and string.format("%d frames, the first: %s", count, first) or first
end

-- ---- where frames are found ----

function acp.dissector(tvb, pinfo, tree)
	if tvb:len() == 0 then return 0 end
	show(tvb, pinfo, tree)
	return tvb:len()
end

-- On other ports: frames that no receiver would reject.
local function looks_like(tvb, pinfo, tree)
	local size = tvb:reported_len()
	if size < HEADER or tvb:len() < HEADER then return false end
	if header_fault(read_header(tvb), size) and not batch_size(tvb) then return false end
	show(tvb, pinfo, tree)
	return true
end

local ports, port = DissectorTable.get("udp.port"), 16707
acp.prefs.port = Pref.uint("UDP port", port, "Of jobs that were not told another one")
ports:add(port, acp)

function acp.prefs_changed()
	if port == acp.prefs.port then return end
	ports:remove(port, acp)
	port = acp.prefs.port
	ports:add(port, acp)
end

acp:register_heuristic("udp", looks_like)
