-- The chat: one conversation, its window, and the window where one types.
local client = require('lakecode.client')
local view = require('lakecode.view')

local M = {
  id = nil, -- of the conversation
  state = nil, -- the last one the server told
}

local chat -- the view
local input -- buffer of the composer
local waiting = {} -- functions to run once the conversation is open
local opening = false

local function config()
  return require('lakecode').config
end

local function win_of(buf)
  local wins = buf and vim.api.nvim_buf_is_valid(buf) and vim.fn.win_findbuf(buf) or {}
  for _, w in ipairs(wins) do
    if vim.api.nvim_win_get_tabpage(w) == vim.api.nvim_get_current_tabpage() then
      return w
    end
  end
end

--- What a status line may show: "Lakecode idle", "Lakecode running", ...
function M.status()
  if not client.running() then
    return 'Lakecode off'
  end
  local s = M.state
  if not s then
    return 'Lakecode …'
  end
  local text = 'Lakecode ' .. s.phase
  if #s.queue > 0 then
    text = text .. (', %d queued%s'):format(#s.queue, s.queuePaused and ' (paused)' or '')
  end
  return text
end

local function refresh()
  local w = chat and win_of(chat.buf)
  if w then
    vim.wo[w].statusline = ' ' .. M.status():gsub('%%', '%%%%')
  end
end

local function map(buf, mode, lhs, f, desc)
  vim.keymap.set(mode, lhs, f, { buffer = buf, desc = desc, nowait = true })
end

local function make_buffers()
  if not (chat and vim.api.nvim_buf_is_valid(chat.buf)) then
    chat = view.new()
    pcall(vim.api.nvim_buf_set_name, chat.buf, 'lakecode://chat')
    map(chat.buf, 'n', '<Esc><Esc>', M.stop, 'stop the turn')
    map(chat.buf, 'n', 'i', function()
      M.open()
    end, 'write a message')
  end
  if not (input and vim.api.nvim_buf_is_valid(input)) then
    input = vim.api.nvim_create_buf(false, true)
    pcall(vim.api.nvim_buf_set_name, input, 'lakecode://message')
    vim.bo[input].bufhidden = 'hide'
    vim.bo[input].filetype = 'markdown'
    map(input, 'n', '<CR>', M.send, 'send the message')
    map(input, 'i', '<C-s>', M.send, 'send the message')
    map(input, 'n', '<Esc><Esc>', M.stop, 'stop the turn')
  end
end

local function plain(win)
  for name, value in pairs({ number = false, relativenumber = false, signcolumn = 'no', spell = false, wrap = true, linebreak = true, foldenable = false }) do
    vim.wo[win][name] = value
  end
end

--- Shows the two windows and puts the cursor where one types.
function M.show()
  make_buffers()
  if not win_of(chat.buf) then
    vim.cmd('botright vertical ' .. config().width .. ' split')
    vim.api.nvim_win_set_buf(0, chat.buf)
    plain(0)
    vim.wo.winfixwidth = true
  end
  if not win_of(input) then
    vim.api.nvim_set_current_win(win_of(chat.buf))
    vim.cmd('belowright 5 split')
    vim.api.nvim_win_set_buf(0, input)
    plain(0)
    vim.wo.winfixheight = true
    vim.wo.statusline = ' message: Enter sends (insert: Ctrl-S), Esc Esc stops'
  end
  vim.api.nvim_set_current_win(win_of(input))
  refresh()
end

local function report(text)
  vim.notify('Lakecode: ' .. text, vim.log.levels.ERROR)
end

local function ask(e)
  local q = e.interaction
  local function resolve(answer)
    answer.conversationId, answer.interactionId = M.id, q.interactionId
    client.request('lakecode/interaction/resolve', answer)
  end
  local function free()
    vim.ui.input({ prompt = q.text .. ' ' }, function(text)
      resolve(text and text ~= '' and { text = text } or { skip = true })
    end)
  end
  local labels = {}
  for _, o in ipairs(q.options) do
    table.insert(labels, o.label .. (o.description and (' – ' .. o.description) or ''))
  end
  if #labels == 0 then
    return free()
  end
  local skip = #labels + 1
  table.insert(labels, '(skip the question)')
  if q.freeText then
    table.insert(labels, '(answer in your own words)')
  end
  vim.ui.select(labels, { prompt = q.text }, function(_, i)
    if i and i > skip then
      return free()
    end
    resolve((not i or i == skip) and { skip = true } or { chosen = { i - 1 } })
  end)
end

local function load_history(done)
  client.request('lakecode/conversation/transcript', { conversationId = M.id }, function(page)
    M.state = page.state
    chat:replay(page.turns, page.more)
    client.request('lakecode/conversation/subscribe', { conversationId = M.id, sinceSeq = page.state.seq, epoch = page.state.epoch }, function(r)
      if r.snapshotRequired then
        return load_history(done)
      end
      refresh()
      if done then
        done()
      end
    end)
  end)
end

local function on_events(p)
  if p.conversationId ~= M.id then
    return
  end
  local reload = false
  for _, e in ipairs(p.events) do
    if e.kind == 'lagged' then
      return load_history()
    elseif e.kind == 'interactionRequested' then
      ask(e)
    else
      chat:event(e)
      reload = reload or e.kind == 'callEnded' or e.kind == 'turnFinished'
    end
  end
  if reload then
    client.reload()
  end
end

local function on_state(s)
  if s.conversationId == M.id then
    M.state = s
    refresh()
    vim.cmd('silent doautocmd <nomodeline> User LakecodeState')
  end
end

local function ready()
  local function opened(r)
    M.id, M.state = r.conversationId, r.state
    opening = false
    load_history(function()
      local todo = waiting
      waiting = {}
      for _, f in ipairs(todo) do
        f()
      end
    end)
  end
  local function refused(text)
    opening, waiting = false, {}
    report(text)
    chat:note(text)
  end
  if M.id then
    client.request('lakecode/conversation/open', { conversationId = M.id }, opened, refused)
  else
    client.request('lakecode/conversation/create', {}, opened, refused)
  end
end

local function gone(code, signal)
  opening, M.state = false, nil
  if chat and vim.api.nvim_buf_is_valid(chat.buf) and (code ~= 0 or signal ~= 0) and not M.quitting then
    chat:note(('The server ended (code %d, signal %d). :Lakecode starts it again; the session goes on.'):format(code, signal))
  end
  M.quitting = false
  refresh()
end

-- with runs f once there is an open conversation.
local function with(f)
  make_buffers()
  if client.running() and M.id and not opening then
    return f()
  end
  table.insert(waiting, f)
  if opening then
    return
  end
  opening = true
  if client.running() then
    return ready()
  end
  if not client.start({ ready = ready, events = on_events, state = on_state, gone = gone }) then
    opening, waiting = false, {}
  end
end

--- Opens the chat.
function M.open()
  M.show()
  with(function() end)
end

--- Sends a message. The composer keeps it when it is refused.
function M.submit(text)
  if vim.trim(text) == '' then
    return
  end
  if not win_of(chat and chat.buf) then
    M.show()
  end
  with(function()
    local p = { conversationId = M.id, text = text, model = config().model, clientRequestId = ('%s-%d'):format(M.id, vim.loop.hrtime()) }
    client.request('lakecode/conversation/submit', p, nil, function(why)
      report(why)
      chat:note('Not sent: ' .. why)
      if vim.trim(table.concat(vim.api.nvim_buf_get_lines(input, 0, -1, false), '\n')) == '' then
        vim.api.nvim_buf_set_lines(input, 0, -1, false, vim.split(text, '\n', { plain = true }))
      end
    end)
  end)
end

--- Sends what stands in the composer.
function M.send()
  local lines = vim.api.nvim_buf_get_lines(input, 0, -1, false)
  local text = vim.trim(table.concat(lines, '\n'))
  if text == '' then
    return
  end
  vim.api.nvim_buf_set_lines(input, 0, -1, false, {})
  M.submit(text)
end

--- Stops the running turn.
function M.stop()
  if M.id and client.running() then
    client.request('lakecode/conversation/stop', { conversationId = M.id })
  end
end

--- Starts a paused queue.
function M.resume()
  with(function()
    client.request('lakecode/queue/resume', { conversationId = M.id })
  end)
end

--- Leaves this conversation for a new one.
function M.new()
  local old = M.id
  if old and client.running() then
    client.request('lakecode/conversation/close', { conversationId = old })
  end
  M.id, M.state = nil, nil
  M.open()
end

--- Chooses a stored session of the workspace and opens it.
function M.sessions()
  M.show()
  with(function()
    client.request('lakecode/session/list', {}, function(r)
      vim.ui.select(r.sessions, {
        prompt = 'Session',
        format_item = function(s)
          if s.problem then
            return '(cannot be opened) ' .. s.problem
          end
          return s.title .. ('  %d turns, %s'):format(s.turns, s.updated:sub(1, 16):gsub('T', ' '))
        end,
      }, function(s)
        if s and s.conversationId ~= M.id then
          M.id = s.conversationId
          opening = true
          ready()
        end
      end)
    end)
  end)
end

--- Ends the server.
function M.quit()
  M.quitting = true
  client.stop()
end

return M
