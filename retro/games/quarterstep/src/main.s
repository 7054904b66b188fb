; Power-on, the main loop, the vertical blank, and the modes that only wait.

.include "game.inc"

DYING_FRAMES = 30
CLEAR_FRAMES = 20
LIVES        = 3

.segment "ZEROPAGE"
; The state of the game. Tools read these addresses: keep the order.
mode:           .res 1                  ; $00
level:          .res 1                  ; $01  0 title, 1 to 5 levels, 6 ending
x_low:          .res 1                  ; $02  left edge of the player, in quarter pixels
x_high:         .res 1                  ; $03
y_low:          .res 1                  ; $04  top edge
y_high:         .res 1                  ; $05
vx:             .res 1                  ; $06  quarter pixels a step, signed
vy:             .res 1                  ; $07
grounded:       .res 1                  ; $08  1 when the last step ended on something solid
rng:            .res 1                  ; $09  1 to 15
door:           .res 1                  ; $0A  0 open, 1 to 57 opening, 64 closed
lag:            .res 1                  ; $0B  1 while the sparks keep the main loop busy
deaths:         .res 1                  ; $0C
timer:          .res 1                  ; $0D  frames spent in a mode that only waits
; What only looks and sounds depend on
facing:         .res 1                  ; 0 right, $40 left
ready:          .res 1                  ; 1 when the main loop waits for the next vertical blank
mask:           .res 1                  ; what the vertical blank writes to PPU_MASK
door_opened:    .res 1                  ; 1 when the door has to vanish from the screen
pad:            .res 1
page:           .res 2                  ; the current screen
scratch:        .res 4
column:         .res 1
row:            .res 1

.segment "BSS"
sprites:        .res 256
noise:          .res 512                ; what the sparks are made of

.segment "CODE"
reset:
    sei
    cld
    ldx #$40
    stx APU_FRAME                       ; no interrupts from the sound unit
    ldx #$FF
    txs
    inx
    stx PPU_CTRL
    stx PPU_MASK
    stx $4010
    txa
:   sta $0000, x                        ; memory holds anything after power-on
    sta $0100, x
    sta $0200, x
    sta $0300, x
    sta $0400, x
    sta $0500, x
    sta $0600, x
    sta $0700, x
    inx
    bne :-
    bit PPU_STATUS                      ; the picture unit takes two blanks to wake
:   bit PPU_STATUS
    bpl :-
:   bit PPU_STATUS
    bpl :-
    lda #$0F
    sta APU_STATUS
    jsr hide_sprites
    lda #MODE_DRAW
    sta mode
    lda #%10001000                      ; interrupt at each blank; sprites from the second table
    sta PPU_CTRL

; One pass a frame, unless the sparks make it longer.
main_loop:
    lda #1
    sta ready
:   lda ready
    bne :-
    jsr read_pad
    ldx mode
    lda steps_high, x
    pha
    lda steps_low, x
    pha
    rts                                 ; jumps to the mode's step

.macro step_table name, part
name:
    .byte part(nothing-1), part(draw-1), part(title-1), part(play-1), part(dying-1), part(clear-1), part(nothing-1)
.endmacro

nothing:
    jmp main_loop

draw:
    jsr draw_step
    jmp main_loop

title:
    lda pad
    and #PAD_START
    beq nothing
    lda #1
    jmp go_to

play:
    jsr play_step
    jsr show_player
    lda lag
    beq nothing
    jsr sparks
    jsr show_motes
    lda #0
    sta lag
    jmp main_loop

dying:
    inc timer
    lda timer
    cmp #DYING_FRAMES
    bne nothing
    lda deaths
    cmp #LIVES
    beq :+
    lda level
    jmp go_to
:   lda #0
    sta deaths
    jmp go_to

clear:
    jsr sound_clear
    inc timer
    lda timer
    cmp #CLEAR_FRAMES
    bne nothing
    lda level
    clc
    adc #1
go_to:                                  ; begin to draw screen A
    sta level
    lda #MODE_DRAW
    sta mode
    lda #0
    sta timer
    jmp main_loop

; The dance of the sparks takes about 45,000 cycles: one and a half frames, so a step among them takes two.
sparks:
    ldy #8
@pass:
    ldx #0
@byte:
    lda noise, x
    asl a
    eor noise+1, x
    adc #$35
    sta noise, x
    inx
    bne @byte
    dey
    bne @pass
    rts

read_pad:
    lda #1
    sta PAD_1
    sta pad                             ; when this 1 falls out on the left, eight buttons are in
    lsr a
    sta PAD_1
:   lda PAD_1
    lsr a
    rol pad
    bcc :-
    rts

; The vertical blank. While the main loop is busy nothing is shown anew.
blank:
    pha
    txa
    pha
    tya
    pha
    lda ready
    beq @done
    lda #0
    sta OAM_ADDRESS
    lda #>sprites
    sta OAM_DMA
    lda door_opened
    beq :+
    jsr open_door
:   lda #0
    sta PPU_ADDRESS
    sta PPU_ADDRESS
    sta PPU_SCROLL
    sta PPU_SCROLL
    lda #%10001000
    sta PPU_CTRL
    lda mask
    sta PPU_MASK
    lda #0
    sta ready
@done:
    pla
    tay
    pla
    tax
    pla
interrupt:
    rti

.segment "RODATA"
    step_table steps_low, .lobyte
    step_table steps_high, .hibyte

.segment "VECTORS"
    .addr blank, reset, interrupt
