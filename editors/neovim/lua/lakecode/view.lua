-- The text of the chat: turns events into lines of one buffer. It knows no
-- window and no server.
local M = {}

local space = vim.api.nvim_create_namespace('lakecode')
local marks = { ok = '✓', failed = '✗', refused = '✗', notRun = '✗', interrupted = '✗' }

local View = {}
View.__index = View

--- Makes a view with a buffer of its own.
function M.new()
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].swapfile = false
  vim.bo[buf].filetype = 'markdown'
  vim.bo[buf].modifiable = false
  vim.bo[buf].undolevels = -1
  return setmetatable({ buf = buf, calls = {}, fresh = true, open = false }, View)
end

-- change makes the buffer writable for one edit; windows whose cursor is on the
-- last line follow, the others stay where they are.
function View:change(f)
  local last = vim.api.nvim_buf_line_count(self.buf)
  local follow = {}
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    if vim.api.nvim_win_get_cursor(win)[1] >= last then
      table.insert(follow, win)
    end
  end
  vim.bo[self.buf].modifiable = true
  local ok, err = pcall(f)
  vim.bo[self.buf].modifiable = false
  vim.bo[self.buf].modified = false
  last = vim.api.nvim_buf_line_count(self.buf)
  for _, win in ipairs(follow) do
    vim.api.nvim_win_set_cursor(win, { last, 0 })
  end
  if not ok then
    error(err)
  end
end

local function lines_of(text)
  return vim.split(text:gsub('\r', ''):gsub('%z', ''), '\n', { plain = true })
end

--- Appends whole lines; a partial line before them is ended.
function View:lines(lines)
  self:change(function()
    local from = self.fresh and 0 or -1
    vim.api.nvim_buf_set_lines(self.buf, from, -1, false, lines)
    self.fresh, self.open = false, false
  end)
end

--- Appends text to the last line, or begins a new one.
function View:text(text)
  if not self.open then
    self:lines(self.last == 'call' and { '', '' } or { '' })
    self.open, self.last = true, 'text'
  end
  self:change(function()
    local row = vim.api.nvim_buf_line_count(self.buf) - 1
    local col = #vim.api.nvim_buf_get_lines(self.buf, row, row + 1, true)[1]
    vim.api.nvim_buf_set_text(self.buf, row, col, row, col, lines_of(text))
  end)
end

local function tool_line(mark, call)
  local line = mark .. ' ' .. call.tool
  if call.title and call.title ~= '' then
    line = line .. '  ' .. call.title
  end
  return (line:gsub('[\r\n]', ' '))
end

-- What the model says that a command does and why; nil for calls without it.
local function description(args)
  local ok, decoded = pcall(vim.fn.json_decode, args or '')
  local text = ok and type(decoded) == 'table' and decoded.description
  if type(text) == 'string' and vim.trim(text) ~= '' then
    return (vim.trim(text):gsub('%s+', ' '))
  end
end

--- Puts a line for a call that is about to run.
function View:call_proposed(e)
  local call = { tool = e.tool, title = e.title }
  self:lines(self.last == 'text' and { '', tool_line('…', call) } or { tool_line('…', call) })
  self.last = 'call'
  local row = vim.api.nvim_buf_line_count(self.buf) - 1
  local why = description(e.args)
  if why then
    self:lines({ '    ' .. why })
  end
  call.mark = vim.api.nvim_buf_set_extmark(self.buf, space, row, 0, {})
  self.calls[e.callId] = call
end

--- Rewrites the line of a call that has ended.
function View:call_ended(e)
  local call = self.calls[e.callId]
  if not call then
    return
  end
  local line = tool_line(marks[e.outcome] or '?', call)
  for _, c in ipairs(e.changed or {}) do
    line = line .. ('  +%d -%d'):format(c.added, c.removed)
  end
  local more = {}
  if e.outcome ~= 'ok' then
    more = { '    ' .. lines_of(e.text or '')[1] }
  end
  self:change(function()
    local row = vim.api.nvim_buf_get_extmark_by_id(self.buf, space, call.mark, {})[1]
    vim.api.nvim_buf_set_lines(self.buf, row, row + 1, false, { line, unpack(more) })
  end)
  self.calls[e.callId] = nil
end

--- Shows one event of the protocol.
function View:event(e)
  local k = e.kind
  if k == 'turnStarted' then
    self:heading('You')
    self:lines(lines_of(e.text))
    self:heading('Lakecode')
  elseif k == 'messageDelta' then
    self:text(e.text)
  elseif k == 'messageEnded' then
    self.open = false
  elseif k == 'callProposed' then
    self:call_proposed(e)
  elseif k == 'callEnded' then
    self:call_ended(e)
  elseif k == 'retrying' then
    self:lines({ '… ' .. lines_of(e.reason or '')[1] .. '; trying again' })
  elseif k == 'notice' then
    self:note(e.text)
  elseif k == 'turnFinished' then
    self:finished(e.how, e.error and (e.error.message .. (e.error.next and (' ' .. e.error.next) or '')))
  end
end

function View:heading(name)
  local lines = { '## ' .. name, '' }
  if not self.fresh then
    table.insert(lines, 1, '')
  end
  self:lines(lines)
  self.last = 'heading'
end

--- Shows a sentence of the program.
function View:note(text)
  local lines = lines_of(text)
  for i, l in ipairs(lines) do
    lines[i] = '> ' .. l
  end
  self:lines(lines)
end

function View:finished(how, err)
  if err then
    self:note(err)
  elseif how == 'stopped' then
    self:note('Stopped.')
  elseif how == 'crashed' then
    self:note('Cut off: Lakecode ended in this turn.')
  end
end

--- Shows a stored history from the beginning.
function View:replay(turns, more)
  self:change(function()
    vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, {})
  end)
  self.fresh, self.open, self.calls = true, false, {}
  if more then
    self:note('Older turns are not shown.')
  end
  for _, t in ipairs(turns) do
    self:event({ kind = 'turnStarted', text = t.text })
    for _, it in ipairs(t.items) do
      if it.kind == 'answer' and it.text and it.text ~= '' then
        self:text(it.text)
        self.open = t.how == nil and it == t.items[#t.items]
      elseif it.kind == 'call' then
        self:call_proposed(it)
        if it.outcome then
          self:call_ended(it)
        end
      end
    end
    if t.how then
      self:finished(t.how, t.error)
    end
  end
end

return M
